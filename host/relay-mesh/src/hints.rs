//! What to do about an error, and how the process ends with it. The one place that matches on
//! errors for people.

use mesh::repository::PlaceError;
use mesh::{
    AckError, AddressError, FetchError, FindError, FinishError, HeartbeatError, HookError, IdentifyError, InviteError,
    OrderError, RegisterError, ReleaseError, ReserveError, RosterError, SendError, StatusError, TakeError, WakeError,
    WishError,
};
use store::{ServerTrouble, StoreError};

use crate::commands::cmd::ConsentError;
use crate::commands::listen::ListenError;
use crate::compose::OpenError;
use crate::config::ConfigError;
use crate::error::CommandError;
use crate::events::Unwanted;
use crate::exit::Exit;
use crate::host::HostError;

/// What to do where a stream or its subjects are in use.
pub(crate) const SOMEBODY_ELSES: &str =
    "another mesh or program has that name or those subjects: set `prefix` in [nats] to a word of your own";
/// What to do where a stream cannot lie on as many servers as was asked for.
pub(crate) const REPLICAS: &str = "set `replicas` in [nats] to 1, or to 3 or 5 where the cluster has so many servers";
const WHO_IS_HERE: &str = "run `relay-mesh agents` to see who is here";

impl CommandError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            CommandError::Config(error) => Some(of_config(error)),
            CommandError::Open(error) => of_open(error),
            CommandError::Consent(error) => Some(of_consent(error)),
            CommandError::Name(_) => Some("a name looks like `alice` or `alice@backend`".to_owned()),
            CommandError::Id(_) => Some("`relay-mesh send` and `relay-mesh read` print the ids of messages".to_owned()),
            CommandError::Identify(error) => of_identify(error),
            CommandError::NoAgent => Some(
                "say `--agent NAME`, or set RELAY_AGENT; `relay-mesh register NAME` makes an agent for this command line"
                    .to_owned(),
            ),
            CommandError::Register(error) => of_register(error),
            CommandError::Address(error) => of_address(error),
            CommandError::Send(error) => of_send(error),
            CommandError::Fetch(FetchError::Store(error)) => of_store(error),
            CommandError::Ack(AckError::Unknown { agent, .. }) => {
                Some(format!("run `relay-mesh read --agent {agent}` to see its mail with the ids"))
            }
            CommandError::Ack(AckError::Store(error)) => of_store(error),
            CommandError::Find(FindError::Store(error)) => of_store(error),
            CommandError::Roster(error) => of_roster(error),
            CommandError::Invite(error) => of_invite(error),
            CommandError::Place(error) => of_place(error),
            CommandError::Reserve(error) => of_reserve(error),
            CommandError::Release(error) => of_release(error),
            CommandError::Heartbeat(error) => match error {
                HeartbeatError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
                HeartbeatError::TooLong(_) => Some("say it shorter; details belong into a message".to_owned()),
                HeartbeatError::Store(error) => of_store(error),
            },
            CommandError::Wish(error) => match error {
                WishError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
                WishError::Store(error) => of_store(error),
            },
            CommandError::Order(error) => of_order(error),
            CommandError::Take(error) => match error {
                TakeError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
                TakeError::Store(error) => of_store(error),
            },
            CommandError::Finish(error) => of_finish(error),
            CommandError::Status(StatusError::Unknown(_)) => {
                Some("an agent sees what it sent or was sent; `relay-mesh read` prints the ids".to_owned())
            }
            CommandError::Status(StatusError::Nowhere(_)) => {
                Some("`relay-mesh send` and `relay-mesh read` print the ids; what was settled long ago is let go of".to_owned())
            }
            CommandError::Status(StatusError::Store(error)) => of_store(error),
            CommandError::Hook(HookError::UnknownHarness(_)) => Some(HARNESSES.to_owned()),
            CommandError::Hook(HookError::Harness(_)) => Some("run `relay-mesh doctor` to see what is wrong with it".to_owned()),
            CommandError::Listen(ListenError::Store(error)) | CommandError::Store(error) => of_store(error),
            CommandError::Listen(ListenError::UnknownHarness(_)) => Some(HARNESSES.to_owned()),
            CommandError::Unwanted(error) => Some(of_unwanted(error)),
            CommandError::Wake(error) => Some(match error {
                WakeError::NotRegistered => WHO_ARE_YOU.to_owned(),
                WakeError::TooLong(_) => "send the details as a message: `relay-mesh send`".to_owned(),
            }),
            CommandError::Host(error) => of_host(error),
            CommandError::Input(_) | CommandError::Output(_) => None,
            CommandError::Told { hint, .. } => hint.clone(),
        }
    }

    /// How the process ends.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            CommandError::Config(ConfigError::Unreadable { .. } | ConfigError::Unwritable { .. }) => Exit::Failure,
            CommandError::Config(
                ConfigError::Invalid { .. }
                | ConfigError::NotTheProjects { .. }
                | ConfigError::Variable { .. }
                | ConfigError::Flags
                | ConfigError::NoStore
                | ConfigError::NatsOptions(_)
                | ConfigError::NoHome,
            )
            | CommandError::Name(_)
            | CommandError::Id(_)
            | CommandError::NoAgent => Exit::Usage,
            CommandError::Unwanted(Unwanted::Unknown(_)) => Exit::NotFound,
            CommandError::Unwanted(
                Unwanted::Json(_)
                | Unwanted::Nothing
                | Unwanted::Topic { .. }
                | Unwanted::WhoseMail
                | Unwanted::Name(_)
                | Unwanted::Cursor(_),
            )
            | CommandError::Wake(WakeError::TooLong(_)) => Exit::Usage,
            CommandError::Wake(WakeError::NotRegistered) => Exit::Refused,
            CommandError::Open(_) | CommandError::Store(_) => Exit::Store,
            CommandError::Identify(error) => match error {
                IdentifyError::Ticket(_)
                | IdentifyError::Key
                | IdentifyError::NotYours(_)
                | IdentifyError::Elsewhere { .. } => Exit::Refused,
                IdentifyError::Unknown(_) => Exit::NotFound,
                IdentifyError::Store(_) => Exit::Store,
            },
            CommandError::Register(error) => match error {
                RegisterError::Name(_)
                | RegisterError::TwoTeams { .. }
                | RegisterError::TooLong { .. }
                | RegisterError::TooManySkills(_) => Exit::Usage,
                RegisterError::Crowded(_) | RegisterError::Contended(_) => Exit::Failure,
                RegisterError::Store(_) => Exit::Store,
            },
            CommandError::Address(error) => exit_of_address(error),
            CommandError::Send(error) => match error {
                SendError::Draft(_) | SendError::Nobody => Exit::Usage,
                SendError::Address(error) => exit_of_address(error),
                SendError::OtherUnderKey { stored, .. } if !stored.is_empty() => Exit::Failure,
                SendError::OtherUnderKey { .. } => Exit::Usage,
                SendError::NotRegistered => Exit::Refused,
                SendError::UnknownReply(_) | SendError::NobodyElse => Exit::NotFound,
                SendError::Store { .. } | SendError::Unreadable(_) | SendError::NotQueued(_) => Exit::Store,
            },
            CommandError::Fetch(FetchError::Store(_))
            | CommandError::Ack(AckError::Store(_))
            | CommandError::Find(FindError::Store(_))
            | CommandError::Roster(RosterError::Store(_))
            | CommandError::Status(StatusError::Store(_))
            | CommandError::Listen(ListenError::Store(_)) => Exit::Store,
            CommandError::Ack(AckError::Unknown { .. })
            | CommandError::Status(StatusError::Unknown(_) | StatusError::Nowhere(_))
            | CommandError::Hook(HookError::UnknownHarness(_))
            | CommandError::Roster(RosterError::UnknownHarness(_))
            | CommandError::Listen(ListenError::UnknownHarness(_)) => Exit::NotFound,
            CommandError::Invite(error) => match error {
                InviteError::Unknown(_)
                | InviteError::Ambiguous { .. }
                | InviteError::Roster(RosterError::UnknownHarness(_)) => Exit::NotFound,
                InviteError::TooLong(_) => Exit::Usage,
                InviteError::Joined { .. }
                | InviteError::Another { .. }
                | InviteError::Held(_)
                | InviteError::NotRegistered => Exit::Refused,
                InviteError::AwaitsPerson(_)
                | InviteError::NoWay { .. }
                | InviteError::Ended(_)
                | InviteError::Refused { .. } => Exit::Failure,
                InviteError::Store(_) | InviteError::Roster(RosterError::Store(_)) => Exit::Store,
            },
            CommandError::Place(error) => match error {
                PlaceError::Glob(_) | PlaceError::Outside { .. } | PlaceError::OfItsOwn { .. } => Exit::Usage,
                PlaceError::Unseen { .. } => Exit::NotFound,
            },
            CommandError::Reserve(error) => match error {
                ReserveError::NotRegistered => Exit::Refused,
                ReserveError::Nothing | ReserveError::ReasonTooLong(_) => Exit::Usage,
                ReserveError::Full => Exit::Failure,
                ReserveError::Store(_) => Exit::Store,
            },
            CommandError::Release(error) => match error {
                ReleaseError::NotRegistered | ReleaseError::NotYours { .. } => Exit::Refused,
                ReleaseError::NotReserved(_) => Exit::NotFound,
                ReleaseError::Store(_) => Exit::Store,
            },
            CommandError::Heartbeat(error) => match error {
                HeartbeatError::NotRegistered => Exit::Refused,
                HeartbeatError::TooLong(_) => Exit::Usage,
                HeartbeatError::Store(_) => Exit::Store,
            },
            CommandError::Wish(error) => match error {
                WishError::NotRegistered => Exit::Refused,
                WishError::Store(_) => Exit::Store,
            },
            CommandError::Order(error) => match error {
                OrderError::NotRegistered => Exit::Refused,
                OrderError::Address(error) => exit_of_address(error),
                OrderError::TooLong(_) | OrderError::Ttl => Exit::Usage,
                OrderError::Store(_) => Exit::Store,
            },
            CommandError::Consent(error) => match error {
                ConsentError::Nobody => Exit::Usage,
                ConsentError::AnAgents { .. } => Exit::Refused,
                ConsentError::NotAllowed => Exit::NotFound,
            },
            CommandError::Take(error) => match error {
                TakeError::NotRegistered => Exit::Refused,
                TakeError::Store(_) => Exit::Store,
            },
            CommandError::Finish(error) => match error {
                FinishError::NotRegistered
                | FinishError::NotTaken(_)
                | FinishError::Runs { .. }
                | FinishError::Ended(_) => Exit::Refused,
                FinishError::Unknown(_) => Exit::NotFound,
                FinishError::TooLong(_) => Exit::Usage,
                FinishError::Store(_) => Exit::Store,
            },
            CommandError::Hook(HookError::Harness(_))
            | CommandError::Host(_)
            | CommandError::Input(_)
            | CommandError::Output(_) => Exit::Failure,
            CommandError::Told { exit, .. } => *exit,
        }
    }
}

const HARNESSES: &str = "run `relay-mesh harnesses` to see which are known";

fn of_config(error: &ConfigError) -> String {
    match error {
        ConfigError::Unreadable { .. } => "make the file readable, or take it away".to_owned(),
        ConfigError::Unwritable { .. } => {
            "make the file and its folder writable, or write the setting by hand".to_owned()
        }
        ConfigError::Invalid { .. } => "`relay-mesh help config` lists every setting with an example".to_owned(),
        ConfigError::NotTheProjects { key, .. } => {
            format!("put `{key}` into your own settings: ~/.config/relay-mesh/config.toml")
        }
        ConfigError::Variable { name, .. } => format!("unset {name}, or set it as `relay-mesh help config` shows"),
        ConfigError::NoStore => {
            "write `--store files:DIR` or `--store nats://HOST:4222`; `relay-mesh doctor --store` alone \
             looks at the one that is set"
                .to_owned()
        }
        ConfigError::NatsOptions(_) => "`relay-mesh help config` lists what [nats] may say".to_owned(),
        ConfigError::Flags => "give one of them".to_owned(),
        ConfigError::NoHome => "say where by `--dir DIR`, or set RELAY_DIR or HOME".to_owned(),
    }
}

fn of_open(error: &OpenError) -> Option<String> {
    match error {
        OpenError::Store { source, .. } => of_store(source),
        OpenError::NotOurs { dir } => Some(format!(
            "choose a folder of its own, such as `{}`: what is a data folder is made yours alone",
            dir.join("relay-mesh").display()
        )),
        OpenError::Machine(_) => Some(OTHER_FOLDER.to_owned()),
        OpenError::Secret { .. } => Some("name a file that you can read, in `[nats]` of your settings".to_owned()),
        OpenError::NoPassword => {
            Some("set `password` in `[nats]`, or RELAY_NATS_PASSWORD, to a file that holds it".to_owned())
        }
        OpenError::HalfACertificate { .. } => {
            Some("set both `certificate` and `key` in `[nats]`: each is a file in PEM".to_owned())
        }
        OpenError::NoUser => Some("set `user` in `[nats]`, or RELAY_NATS_USER, beside the password".to_owned()),
        OpenError::Server(error) => of_host(error),
        OpenError::Prefix(_) => Some("set `prefix` in `[nats]` to a word such as RELAY".to_owned()),
    }
}

const OTHER_FOLDER: &str = "check who owns the folder and whether its disk is full, or choose another by `--dir DIR`";

/// What to do about a store that failed.
pub(crate) fn of_store(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Io { source, .. } => Some(match source.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "the folder must be yours; choose another by `--dir DIR` or RELAY_DIR".to_owned()
            }
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                "make room on the disk and try again; what had been stored before is safe".to_owned()
            }
            std::io::ErrorKind::ReadOnlyFilesystem => {
                "choose a folder that can be written, by `--dir DIR` or RELAY_DIR".to_owned()
            }
            std::io::ErrorKind::NotADirectory => {
                "a file lies where the folder should be; choose another place by `--dir DIR` or RELAY_DIR".to_owned()
            }
            _ => OTHER_FOLDER.to_owned(),
        }),
        StoreError::Server { trouble, .. } => Some(match trouble {
            ServerTrouble::Denied => {
                "the server knows you and does not allow this, or does not know you: see `[nats]` in `relay-mesh config`; a \
                 login that has ended is renewed by whoever gave it to you"
                    .to_owned()
            }
            ServerTrouble::TimedOut => {
                "the server is there and does not answer: does it run with JetStream, and has its cluster a leader?"
                    .to_owned()
            }
            ServerTrouble::Full => {
                "the stream or the account is full: raise its limits; what had been stored before is safe".to_owned()
            }
            ServerTrouble::TlsFailed => {
                "TLS does not come about: see `ca`, `certificate` and `key` of [nats]; `relay-mesh doctor --store` says more"
                    .to_owned()
            }
            ServerTrouble::Unsupported => {
                "the server is too old, or nobody answers for JetStream there: `relay-mesh doctor --store` says which"
                    .to_owned()
            }
            ServerTrouble::TooLong => {
                "raise max_payload of the server, or max_msg_size of the stream; `relay-mesh doctor --store` says which"
                    .to_owned()
            }
            ServerTrouble::NotOurs => SOMEBODY_ELSES.to_owned(),
            ServerTrouble::Unusable => {
                "nothing sent there would stay: change the stream or let it go (`nats stream edit`, `nats stream rm`), or set \
                 `prefix` in [nats] to a word of your own"
                    .to_owned()
            }
            ServerTrouble::TooFewServers => REPLICAS.to_owned(),
            ServerTrouble::OutOfReach | ServerTrouble::NothingListens | ServerTrouble::NoLeader | ServerTrouble::Other => "check that a nats-server with JetStream runs there, or leave `--store` out to work on this machine alone"
                .to_owned(),
        }),
        StoreError::Damaged { .. } => {
            Some("look at the file: it was left as it is; move it away to go on without it".to_owned())
        }
        StoreError::Elsewhere { .. } => {
            Some("an agent's mail, claims and record are for its own machine to change: do it there".to_owned())
        }
        StoreError::Unfit { .. } | StoreError::Injected(_) => None,
    }
}

fn of_identify(error: &IdentifyError) -> Option<String> {
    match error {
        IdentifyError::NotYours(_) => Some(
            "leave it out to speak as `shell`, or register an agent of your own: `relay-mesh register NAME`".to_owned(),
        ),
        IdentifyError::Elsewhere { .. } => {
            Some("speak from there, or register an agent of this machine: `relay-mesh register NAME`".to_owned())
        }
        IdentifyError::Unknown(name) => Some(format!("register it first: `relay-mesh register {name}`")),
        IdentifyError::Ticket(_) | IdentifyError::Key => None,
        IdentifyError::Store(error) => of_store(error),
    }
}

fn of_register(error: &RegisterError) -> Option<String> {
    match error {
        RegisterError::Name(_) => Some("a name looks like `alice` or `alice@backend`".to_owned()),
        RegisterError::TwoTeams { name, team } => {
            Some(format!("leave `--team` out, or write `{}@{team}`", name.local()))
        }
        RegisterError::TooManySkills(_) => Some("name the most telling ones".to_owned()),
        RegisterError::TooLong { .. } => Some("say it shorter; details belong into a message".to_owned()),
        RegisterError::Crowded(_) => Some("choose another name".to_owned()),
        RegisterError::Contended(_) => Some("try again".to_owned()),
        RegisterError::Store(error) => of_store(error),
    }
}

fn of_address(error: &AddressError) -> Option<String> {
    match error {
        AddressError::Invalid(_) => Some(WHO_IS_HERE.to_owned()),
        AddressError::Unknown { near, .. } => Some(match near.as_slice() {
            [] => WHO_IS_HERE.to_owned(),
            [one] => format!("did you mean `{one}`?"),
            several => format!("did you mean one of {}?", listed(several)),
        }),
        AddressError::Ambiguous { candidates, .. } => Some(format!("say which: {}", listed(candidates))),
        AddressError::Store(error) => of_store(error),
    }
}

fn exit_of_address(error: &AddressError) -> Exit {
    match error {
        AddressError::Invalid(_) => Exit::Usage,
        AddressError::Unknown { .. } | AddressError::Ambiguous { .. } => Exit::NotFound,
        AddressError::Store(_) => Exit::Store,
    }
}

fn of_send(error: &SendError) -> Option<String> {
    match error {
        SendError::Draft(mesh::message::InvalidDraft::Empty) => {
            Some("give the text as the second argument, or on standard input with `--stdin`".to_owned())
        }
        SendError::Draft(mesh::message::InvalidDraft::BodyTooLong { .. }) => {
            Some("put the text into a file that both can read, and send its path".to_owned())
        }
        SendError::Draft(mesh::message::InvalidDraft::EmptyKey) => {
            Some("leave `--idempotency-key` out, or give each message a key of its own".to_owned())
        }
        SendError::Draft(
            mesh::message::InvalidDraft::LabelTooLong { .. } | mesh::message::InvalidDraft::TooManyTags(_),
        ) => Some("put what is longer into the text".to_owned()),
        SendError::Address(error) => of_address(error),
        SendError::NotRegistered => Some("register first: `relay-mesh register NAME`".to_owned()),
        SendError::Nobody => Some("name the recipient, or send to everyone with `--broadcast`".to_owned()),
        SendError::NobodyElse => Some(WHO_IS_HERE.to_owned()),
        SendError::UnknownReply(_) => {
            Some("`relay-mesh read` prints the ids of the messages that you may answer".to_owned())
        }
        SendError::OtherUnderKey { older, stored, .. } => {
            let for_some = match stored.as_slice() {
                [] => String::new(),
                some => format!("it was stored for {}; ", listed(some)),
            };
            Some(format!(
                "{for_some}give what is new a key of its own; `relay-mesh message {older}` shows what has this one"
            ))
        }
        SendError::Store { stored, source, .. } => match stored.as_slice() {
            [] => of_store(source),
            some => Some(format!(
                "it was stored for {}; send to the others again, with `--idempotency-key` nobody gets it twice",
                listed(some)
            )),
        },
        SendError::Unreadable(error) | SendError::NotQueued(error) => of_store(error),
    }
}

fn of_roster(error: &RosterError) -> Option<String> {
    match error {
        RosterError::UnknownHarness(_) => Some(HARNESSES.to_owned()),
        RosterError::Store(error) => of_store(error),
    }
}

fn of_invite(error: &InviteError) -> Option<String> {
    match error {
        InviteError::Unknown(_) => Some("run `relay-mesh discover` to see which sessions live here".to_owned()),
        InviteError::Ambiguous { harnesses, .. } => Some(format!("say which by `--harness`: {}", harnesses.join(", "))),
        InviteError::Joined { agent, .. } => Some(format!("write to it: `relay-mesh send {agent} TEXT`")),
        InviteError::AwaitsPerson(_) => Some("try again when they have answered it".to_owned()),
        InviteError::NoWay { .. } => Some(
            "ask its agent yourself to call register_agent; a session that was begun before its harness was set up \
             hears nothing, a new one may"
                .to_owned(),
        ),
        InviteError::Another { .. } => Some("write to it once it has joined: `relay-mesh discover` says so".to_owned()),
        InviteError::Ended(_) => Some("run `relay-mesh discover` to see which sessions live here".to_owned()),
        InviteError::Held(_) => Some("wait some minutes, or speak to the session yourself".to_owned()),
        InviteError::Refused { .. } => Some("run `relay-mesh doctor` to see what is wrong with its harness".to_owned()),
        InviteError::TooLong(_) => Some("say it shorter; the rest fits into a message once it has joined".to_owned()),
        InviteError::NotRegistered => Some("register first: `relay-mesh register NAME`".to_owned()),
        InviteError::Roster(error) => of_roster(error),
        InviteError::Store(error) => of_store(error),
    }
}

fn of_place(error: &PlaceError) -> Option<String> {
    match error {
        PlaceError::Glob(_) => {
            Some("`relay-mesh help reserve` shows how patterns are written; quote them for the shell".to_owned())
        }
        PlaceError::Outside { .. } => Some("name another repository by `--repo DIR`".to_owned()),
        PlaceError::OfItsOwn { top, .. } => {
            Some(format!("name that one by `--repo {}`; patterns then start there", top.display()))
        }
        PlaceError::Unseen { .. } => {
            Some("check that it is there, and that it and its symlinks can be read".to_owned())
        }
    }
}

const WHO_ARE_YOU: &str = "say who you are: `--from NAME`, after `relay-mesh register NAME`";

fn of_reserve(error: &ReserveError) -> Option<String> {
    match error {
        ReserveError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
        ReserveError::Nothing => None,
        ReserveError::ReasonTooLong(_) => Some("say it shorter; details belong into a message".to_owned()),
        ReserveError::Full => {
            Some("reserve by patterns, as in `src/parser/**`, and release what is not needed".to_owned())
        }
        ReserveError::Store(error) => of_store(error),
    }
}

fn of_release(error: &ReleaseError) -> Option<String> {
    match error {
        ReleaseError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
        ReleaseError::NotYours { owner, .. } => Some(format!("ask for it: `relay-mesh send {owner} TEXT`")),
        ReleaseError::NotReserved(_) => {
            Some("run `relay-mesh reservations --repo .` to see what is reserved".to_owned())
        }
        ReleaseError::Store(error) => of_store(error),
    }
}

fn of_order(error: &OrderError) -> Option<String> {
    match error {
        OrderError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
        OrderError::Address(error) => of_address(error),
        OrderError::TooLong(_) => {
            Some("put what is longer into a file that both can read, and name its path".to_owned())
        }
        OrderError::Ttl => Some("write it as `--ttl 90s`, `20m`, `2h` or `1d`".to_owned()),
        OrderError::Store(error) => of_store(error),
    }
}

fn of_consent(error: &ConsentError) -> String {
    match error {
        ConsentError::Nobody => {
            "register a name for your terminal (`relay-mesh register NAME`), allow that, and ask with `--from NAME`"
        }
        ConsentError::AnAgents { .. } => "run it in a terminal of your own",
        ConsentError::NotAllowed => "run `relay-mesh cmd allowed` to see what is",
    }
    .to_owned()
}

fn of_finish(error: &FinishError) -> Option<String> {
    match error {
        FinishError::NotRegistered => Some(WHO_ARE_YOU.to_owned()),
        FinishError::Unknown(_) => {
            Some("run `relay-mesh cmd list --all` to see the commands with their ids".to_owned())
        }
        FinishError::Runs { .. } => Some("`relay-mesh cmd list --all` shows what becomes of it".to_owned()),
        FinishError::NotTaken(_) => Some("take it first: `relay-mesh cmd take AGENT`".to_owned()),
        FinishError::Ended(_) => Some("its result stays; send a message where there is more to say".to_owned()),
        FinishError::TooLong(_) => Some("put it into a file that both can read, and give its path".to_owned()),
        FinishError::Store(error) => of_store(error),
    }
}

fn of_unwanted(error: &Unwanted) -> String {
    match error {
        Unwanted::Unknown(_) => WHO_IS_HERE.to_owned(),
        Unwanted::WhoseMail => "say `--agent NAME`, or leave `inbox` out".to_owned(),
        Unwanted::Json(_) | Unwanted::Nothing | Unwanted::Topic { .. } | Unwanted::Name(_) | Unwanted::Cursor(_) => {
            "see `relay-mesh help events`".to_owned()
        }
    }
}

fn of_host(error: &HostError) -> Option<String> {
    match error {
        HostError::Running { .. } => {
            Some("stop it by `relay-mesh down`, or use another folder by `--dir DIR`".to_owned())
        }
        HostError::Listen(error) => Some(error.hint()),
        // On a full disk it has no log.
        HostError::Start { log, .. } => Some(match std::fs::metadata(log) {
            Ok(found) if found.len() > 0 => format!("its log says more: {}", log.display()),
            Ok(_) | Err(_) => "run `relay-mesh serve`, which says here what is wrong".to_owned(),
        }),
        HostError::Stubborn { pid } => Some(format!("look at what it does, and end it yourself: kill -KILL {pid}")),
        HostError::Starting { .. } => Some("wait a moment, and look again with `relay-mesh status`".to_owned()),
        HostError::Token { path, .. } | HostError::Record { path, .. } => {
            Some(format!("look at the file, and remove it where it is not needed: {}", path.display()))
        }
        HostError::Spawn(_) | HostError::Signal { .. } | HostError::Http(_) | HostError::Stdio(_) => None,
    }
}

fn listed(names: &[mesh::names::AgentName]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
