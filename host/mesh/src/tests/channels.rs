//! Channels: who is in them, and that a message to one reaches every member.

use store::{Durability, Store as _};

use super::{World, draft, name};
use crate::messages::channel::{ChannelError, ChannelName, MOST_CHANNELS};
use crate::storage::keys;
use crate::testing::shell_call;
use crate::{DryRun, Scope, SendError};

fn channel(text: &str) -> ChannelName {
    text.parse().expect("a channel")
}

async fn listed(world: &World) -> String {
    let channels = world.mesh.channels().await.expect("listed");
    let line = |one: &crate::messages::channel::Channel| {
        format!("{} {}", one.name, one.members.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    };
    channels.iter().map(line).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn a_message_to_a_channel_goes_to_every_member_but_its_sender() {
    let world = World::new();
    let alice = world.joined("alice").await;
    for agent in ["bob", "carol", "dave"] {
        world.joined(agent).await;
    }
    for agent in ["carol", "alice", "bob"] {
        assert!(world.mesh.join_channel(&name(agent), &channel("#audit")).await.expect("joined"));
    }
    assert!(!world.mesh.join_channel(&name("bob"), &channel("audit")).await.expect("joined"), "it was in it");
    world.mesh.join_channel(&name("dave"), &channel("#build")).await.expect("joined");
    assert_eq!(listed(&world).await, "#audit alice bob carol, #build dave");
    let sent = world.send(&alice, "#audit", draft("look")).await.expect("sent");
    let to: Vec<&str> = sent.recipients.iter().map(|one| one.to.as_str()).collect();
    assert_eq!(to, ["bob", "carol"], "each has a status of its own");
    for (agent, expected) in [("bob", "look"), ("carol", "look"), ("alice", ""), ("dave", "")] {
        assert_eq!(world.fetch(agent).await, expected, "{agent}");
    }
    assert!(world.mesh.leave_channel(&name("bob"), &channel("#audit")).await.expect("left"));
    assert!(!world.mesh.leave_channel(&name("bob"), &channel("#audit")).await.expect("left"));
    assert_eq!(listed(&world).await, "#audit alice carol, #build dave");
}

/// A process was killed while it removed bob, and had come as far as his record.
#[tokio::test]
async fn the_next_agent_of_a_name_is_in_no_channel_of_the_one_before() {
    let world = World::new();
    let alice = world.joined("alice").await;
    world.joined("bob").await;
    for agent in ["alice", "bob"] {
        world.mesh.join_channel(&name(agent), &channel("#audit")).await.expect("joined");
    }
    world.send(&alice, "bob", draft("hello")).await.expect("sent");
    world.fetch("bob").await;
    let record = world.store.get(&keys::meta(&name("bob"))).await.expect("read").expect("a record");
    let gone = world.store.swap(&keys::meta(&name("bob")), Some(record.revision), None, Durability::Process).await;
    assert_eq!(gone.expect("removed"), None);
    world.mesh.clean_up(Scope::Everything, DryRun::No, None).await.expect("cleaned up");
    let left = async |agent: &str| world.store.get(&keys::channels_of(&name(agent))).await.expect("read").is_some();
    assert_eq!((left("bob").await, left("alice").await), (false, true));
    world.joined("bob").await;
    assert_eq!(listed(&world).await, "#audit alice");
}

#[tokio::test]
async fn a_channel_that_nobody_is_in_is_an_error_and_so_is_what_is_no_channel() {
    let world = World::new();
    let alice = world.joined("alice").await;
    let send = async |to: &str| world.send(&alice, to, draft("hello")).await.expect_err("refused");
    assert!(matches!(send("#nobody").await, SendError::EmptyChannel(_)));
    assert!(matches!(send("#No Body").await, SendError::Channel(_)));
    world.mesh.join_channel(&name("alice"), &channel("#mine")).await.expect("joined");
    assert!(matches!(send("#mine").await, SendError::NobodyElse));
    let unknown = world.mesh.join_channel(&name("ghost"), &channel("#mine")).await;
    assert!(matches!(unknown, Err(ChannelError::Unknown(_))));
    for number in 1..MOST_CHANNELS {
        world.mesh.join_channel(&name("alice"), &channel(&format!("c{number}"))).await.expect("joined");
    }
    let many = world.mesh.join_channel(&name("alice"), &channel("one-more")).await;
    assert!(matches!(many, Err(ChannelError::TooMany(_))));
    world.send(&shell_call(None), "#mine", draft("hello")).await.expect("sent");
    assert_eq!(world.fetch("alice").await, "hello");
}
