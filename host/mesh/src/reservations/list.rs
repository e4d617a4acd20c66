//! Lists reservations, to show or count them.

use store::{Key, StoreError};

use crate::core::Core;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::reservations::Reservation;
use crate::reservations::ledger::Ledger;
use crate::reservations::renamed;
use crate::reservations::repository::Repository;
use crate::storage::{keys, records};

/// Which reservations to list. The default is all that hold.
#[derive(Clone, Debug, Default)]
pub struct ReservationFilter {
    /// Only those of this repository.
    pub repository: Option<Repository>,
    /// Only those of this agent.
    pub owner: Option<AgentName>,
    /// Also those that have lapsed or were taken, for as long as they are remembered.
    pub also_over: bool,
}

impl ReservationFilter {
    fn matches(&self, one: &Reservation, now: Instant) -> bool {
        self.owner.as_ref().is_none_or(|owner| one.owner == *owner) && (self.also_over || one.holds(now))
    }
}

/// The reservations of a repository, in the order in which they were first granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryReservations {
    /// Which repository.
    pub repository: Repository,
    /// At least one.
    pub reservations: Vec<Reservation>,
}

pub(crate) async fn reservations(
    core: &Core,
    filter: &ReservationFilter,
) -> Result<Vec<RepositoryReservations>, StoreError> {
    let keys = match &filter.repository {
        Some(only) => {
            renamed::follow(core, only).await?;
            vec![keys::reservations_of(only)]
        }
        None => core.shared.list(&keys::reservations()).await?,
    };
    let now = core.machine.now();
    let mut all = Vec::with_capacity(keys.len());
    for key in keys {
        let Some(value) = core.shared.get(&key).await? else { continue };
        match read(&core.shared.place(&key), &value.bytes, filter, now) {
            Ok(listed) => all.extend(listed),
            Err(damaged) if filter.repository.is_some() => return Err(damaged),
            // One damaged value hides one repository from the list. A call that names that repository gets the error.
            Err(damaged) => skipped(&key, &damaged),
        }
    }
    Ok(all)
}

fn skipped(key: &Key, damaged: &StoreError) {
    tracing::warn!(%key, error = %damaged, "skipped a repository whose reservations cannot be read");
}

/// What of a ledger's text is to be listed, if anything is.
fn read(
    place: &str,
    bytes: &[u8],
    filter: &ReservationFilter,
    now: Instant,
) -> Result<Option<RepositoryReservations>, StoreError> {
    let Ledger { repository, mut reservations } = records::parse_at(|| place.to_owned(), bytes)?;
    reservations.retain(|one| filter.matches(one, now));
    Ok((!reservations.is_empty()).then_some(RepositoryReservations { repository, reservations }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"{"id":"01JD8Z3K5V0000000000000000","owner":"alice","pattern":"src/\"a\"/**","mode":"shared","granted":1,"expires":9,"reason":"a\tb"}"#;

    /// Reads a repository's text.
    fn check(text: &str, filter: &ReservationFilter, now: u64, expected: &[&str]) {
        let told: Vec<String> = match read("/there/a.json", text.as_bytes(), filter, Instant(now)) {
            Ok(listed) => {
                let each = listed.iter().flat_map(|listed| listed.reservations.iter().map(move |one| (listed, one)));
                each.map(|(listed, one)| format!("{} {} {}", listed.repository.as_str(), one.owner, one.pattern))
                    .collect()
            }
            Err(error) => vec![error.to_string()],
        };
        // The JSON library adds the place in the text.
        assert_eq!(told.len(), expected.len(), "{text}: {told:?}");
        assert!(told.iter().zip(expected).all(|(told, expected)| told.starts_with(expected)), "{text}: {told:?}");
    }

    fn ledger(reservations: &[&str]) -> String {
        format!(r#"{{"repository":"/a","reservations":[{}]}}"#, reservations.join(","))
    }

    #[test]
    fn lists_what_matches_the_filter() {
        let all = ReservationFilter::default();
        let bob = SOUND.replace("alice", "bob").replace("/**", "");
        let both = ledger(&[SOUND, &bob]);
        check(&both, &all, 5, &[r#"/a alice src/"a"/**"#, r#"/a bob src/"a""#]);
        let of_bob = ReservationFilter { owner: Some("bob".parse().expect("a name")), ..all.clone() };
        check(&both, &of_bob, 5, &[r#"/a bob src/"a""#]);
        check(&both, &all, 9, &[]);
        check(&ledger(&[&bob]), &ReservationFilter { also_over: true, ..all }, 9, &[r#"/a bob src/"a""#]);
    }

    #[test]
    fn names_the_damage() {
        for (damaged, why) in [
            (SOUND.replace("01JD8Z3K5V0000000000000000", "7"), "`7` is not an id: one is 26 characters long"),
            (SOUND.replace("alice", "Alice"), "`Alice` is not a name"),
            (SOUND.replace("src/", "{src/"), r#"`{src/"a"/**` is not a pattern: this `{` is never closed"#),
            (SOUND.replace("src/", "/src/"), r#"`/src/"a"/**` is not a pattern: it begins with a `/`"#),
            (SOUND.replace("shared", "mine"), "unknown variant `mine`"),
            (SOUND.replace(r#","mode""#, ""), "expected `,` or `}`"),
            ("{}".to_owned(), "missing field `id`"),
        ] {
            let text = ledger(&[SOUND, &damaged]);
            check(&text, &ReservationFilter::default(), 5, &[&format!("`/there/a.json` is damaged: {why}")]);
        }
        for text in ["", "{}", "[]"] {
            check(text, &ReservationFilter::default(), 5, &["`/there/a.json` is damaged: "]);
        }
    }

    #[tokio::test]
    async fn a_damaged_repository_hides_itself_alone_and_is_an_error_if_it_is_named() {
        let world = crate::tests::World::new();
        let store = world.mesh.core.shared.clone();
        let bob = SOUND.replace("alice", "Alice");
        for (name, one) in [("/a", bob.as_str()), ("/b", SOUND)] {
            let text = format!(r#"{{"repository":"{name}","reservations":[{one}]}}"#);
            let key = keys::reservations_of(&Repository::named(name));
            store.swap(&key, None, Some(text.as_bytes()), store::Durability::Process).await.expect("put");
        }
        let also_over = ReservationFilter { also_over: true, ..ReservationFilter::default() };
        let all = reservations(&world.mesh.core, &also_over).await.expect("listed");
        assert_eq!(all.iter().map(|one| one.repository.as_str()).collect::<Vec<_>>(), ["/b"]);
        let only = ReservationFilter { repository: Some(Repository::named("/a")), ..also_over };
        assert!(matches!(reservations(&world.mesh.core, &only).await, Err(StoreError::Damaged { .. })));
    }
}
