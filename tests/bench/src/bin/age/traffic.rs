//! The mail of a folder, in the order of time: who writes to whom, what becomes of each message, and when. The same
//! for each run but for the time at which it ends.

use bench::Failure;
use mesh::messages::receipt::{DeliveryStatus, Event, Receipt};
use mesh::messages::{Draft, Message, Priority, Trace};
use mesh::names::{AgentName, MessageId};
use mesh::ports::machine::Instant;
use mesh::sessions::SessionRef;

use crate::options::Age;
use crate::records::{AGENTS, HARNESS, agent, session_id};

/// A day in milliseconds.
const DAY: u64 = 24 * 3_600_000;
/// Messages of a day, and sessions of a day, at full volume.
const MESSAGES: u64 = 20_000;
const SESSIONS: u64 = 500;
/// How many messages wait for each agent in the end.
pub(crate) const WAITING: u64 = 5;
/// After how many replies a conversation ends.
const LONGEST_CHAIN: u32 = 6;
/// The product deletes nothing that is younger than this.
const NEW: u64 = 5 * DAY;
/// How long a lease lasts.
const LEASE: u64 = 60_000;
/// What agents say. Bodies are one to six of these: 160 bytes in the middle.
const SENTENCES: [&str; 8] = [
    "The parser compiles again and its tests pass.",
    "I have reserved src/lexer until the refactoring is through; tell me before you touch it.",
    "Which of the two migrations runs first?",
    "Done: 14 files changed, and the benchmark is 3 % faster.",
    "CI is red on main since 4f2c1aa, probably the timeout in tests/waking.",
    "Please review docs/parser.md, above all the part on errors.",
    "No.",
    "The \"retry\" flag is gone; use --attempts N instead.",
];

/// When a folder's mail begins and ends, and how much there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Its first moment, in milliseconds.
    pub(crate) start: u64,
    length: u64,
    /// How many messages it has.
    pub(crate) messages: u64,
    /// How many the folder of a day has.
    pub(crate) of_a_day: u64,
    session: u64,
}

impl Span {
    /// The span of an age that ends at a time, with a part of the usual volume.
    pub(crate) fn of(age: Age, divide: u64, end: u64) -> Span {
        let divisor = divide * age.divisor();
        let length = age.days() * DAY;
        let messages = (age.days() * MESSAGES / divisor).max(AGENTS as u64 * WAITING * 2);
        let of_a_day = (MESSAGES / divide).min(messages);
        Span { start: end - length, length, messages, of_a_day, session: DAY * AGENTS as u64 * divisor / SESSIONS }
    }

    /// The end of its last day.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Whether this time is in the last day.
    pub(crate) fn is_last_day(&self, at: u64) -> bool {
        at + DAY >= self.end()
    }

    /// Whether a message of this time is kept by `gc`.
    pub(crate) fn is_new(&self, at: u64) -> bool {
        at + NEW >= self.end()
    }

    /// The number of an agent's session at a time.
    pub(crate) fn session_at(&self, at: u64) -> u64 {
        at.min(self.end() - 1).saturating_sub(self.start) / self.session
    }

    fn at(&self, number: u64) -> u64 {
        self.start + number * self.length / self.messages
    }
}

/// A message and what became of it.
pub(crate) struct Delivery {
    /// The sender's number.
    pub(crate) from: usize,
    /// The recipient's number.
    pub(crate) to: usize,
    /// The message.
    pub(crate) message: Message,
    /// What happened to it, in order.
    pub(crate) receipts: Vec<Receipt>,
    /// The receipt of the message that it answers, in the sender's own log.
    pub(crate) answered: Option<Receipt>,
    /// Whether it waits in the end.
    pub(crate) waits: bool,
    /// Whether it was read and not acknowledged.
    pub(crate) is_only_read: bool,
}

/// All mail of a span.
pub(crate) struct Traffic {
    span: Span,
    number: u64,
    names: Vec<AgentName>,
    /// The last message from one agent to another that was not answered.
    open: Vec<Option<(MessageId, String, Trace)>>,
    seed: u64,
}

impl Traffic {
    /// The mail of this span.
    pub(crate) fn of(span: Span) -> Result<Traffic, Failure> {
        let names = (0..AGENTS).map(|number| Ok(agent(number).parse()?)).collect::<Result<_, Failure>>()?;
        Ok(Traffic { span, number: 0, names, open: vec![None; AGENTS * AGENTS], seed: 0x9e37_79b9_7f4a_7c15 })
    }

    /// The next message, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<Delivery>, Failure> {
        let number = self.number;
        if number == self.span.messages {
            return Ok(None);
        }
        self.number += 1;
        let waits = number + AGENTS as u64 * WAITING >= self.span.messages;
        let agents = AGENTS as u64;
        let from = usize::try_from(number % agents)?;
        let to = (from + 1 + usize::try_from(number / agents % (agents - 1))?) % AGENTS;
        let at = self.span.at(number);
        let dice = self.random();
        let id = self.id(at)?;
        let answered = match self.open[to * AGENTS + from].take() {
            Some(open) if dice.is_multiple_of(2) && open.2.hops < LONGEST_CHAIN => Some(open),
            Some(_) | None => None,
        };
        let message = self.message(id, at, (from, to), answered.as_ref(), dice);
        self.open[from * AGENTS + to] = Some((id, message.thread.clone(), message.trace));
        let reply = answered.map(|(message, _, _)| Receipt {
            message,
            at: Instant(at + 2),
            event: status(DeliveryStatus::Acknowledged, "reply", Some(serde_json::json!({ "reply": id }))),
        });
        let (receipts, is_only_read) = self.receipts((id, to), at, waits, dice);
        Ok(Some(Delivery { from, to, message, receipts, answered: reply, waits, is_only_read }))
    }

    fn message(
        &self,
        id: MessageId,
        at: u64,
        (from, to): (usize, usize),
        answered: Option<&(MessageId, String, Trace)>,
        dice: u64,
    ) -> Message {
        let said = (0..1 + (dice >> 8) % 6).map(|place| SENTENCES[((dice >> (12 + 3 * place)) % 8) as usize]);
        let draft = Draft { body: said.collect::<Vec<_>>().join(" "), ..Draft::default() };
        Message {
            id,
            at: Instant(at),
            from: self.names[from].clone(),
            to: self.names[to].clone(),
            subject: draft.subject_or_default(),
            thread: answered.map_or_else(|| id.to_string(), |(_, thread, _)| thread.clone()),
            reply_to: answered.map(|(id, _, _)| *id),
            priority: if dice % 50 == 7 { Priority::High } else { Priority::Normal },
            tags: if dice % 20 == 3 { vec!["review".to_owned()] } else { Vec::new() },
            idempotency_key: (dice % 10 == 9).then(|| format!("run-{id}")),
            broadcast: false,
            trace: match answered {
                Some((_, _, trace)) => Trace { root: trace.root, hops: trace.hops + 1 },
                None => Trace { root: id, hops: 0 },
            },
            held: None,
            body: draft.body,
        }
    }

    /// What a normal delivery leaves: a wake file's notification, a lease, and the fetch that presented it, or the hook
    /// that carried it and the evidence that it was shown.
    /// Says also whether it was only read.
    fn receipts(&mut self, (id, to): (MessageId, usize), at: u64, waits: bool, dice: u64) -> (Vec<Receipt>, bool) {
        let receipt = |after: u64, event: Event| Receipt { message: id, at: Instant(at + after), event };
        let mut receipts = vec![receipt(3, status(DeliveryStatus::Notified, "wake-file", None))];
        if waits {
            return (receipts, false);
        }
        let lease = format!("{:016x}{:016x}", self.random(), self.random());
        receipts.push(receipt(1_500, Event::Leased { lease, until: Instant(at + 1_500 + LEASE) }));
        let (reached, route) = match dice % 4 {
            0 => (DeliveryStatus::Shown, "hook:PostToolUse"),
            1 => (DeliveryStatus::Shown, "hook:UserPromptSubmit"),
            _ => (DeliveryStatus::Read, "fetch"),
        };
        if reached == DeliveryStatus::Shown {
            let session = SessionRef { harness: HARNESS.to_owned(), id: session_id(to, at / DAY) };
            receipts.push(receipt(1_501, Event::HandedOver { session, route: route.to_owned() }));
        }
        receipts.push(receipt(1_502, status(reached, route, None)));
        let acknowledges = reached == DeliveryStatus::Read && dice % 16 > 11;
        if acknowledges {
            receipts.push(receipt(2_500, status(DeliveryStatus::Acknowledged, "acknowledge", None)));
        }
        (receipts, reached == DeliveryStatus::Read && !acknowledges)
    }

    /// A ULID of this time.
    fn id(&mut self, at: u64) -> Result<MessageId, Failure> {
        let random = u128::from(self.random()) << 64 | u128::from(self.random());
        Ok(ulid::Ulid::from_parts(at, random).to_string().parse()?)
    }

    /// xorshift64*.
    fn random(&mut self) -> u64 {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

fn status(status: DeliveryStatus, route: &str, evidence: Option<serde_json::Value>) -> Event {
    Event::Status { status, route: route.to_owned(), evidence }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_even_and_ends_with_mail_that_waits() {
        let span = Span::of(Age::Day, 1, 1_795_000_000_000);
        let mut traffic = Traffic::of(span).expect("names");
        let (mut sent, mut got, mut waiting) = ([0; AGENTS], [0; AGENTS], [0; AGENTS]);
        let (mut last, mut replies) = (0, 0);
        while let Some(delivery) = traffic.next().expect("ids") {
            assert_ne!(delivery.from, delivery.to);
            assert!(delivery.message.at.0 >= last && delivery.message.at.0 < span.end());
            last = delivery.message.at.0;
            sent[delivery.from] += 1;
            got[delivery.to] += 1;
            waiting[delivery.to] += u64::from(delivery.waits);
            replies += usize::from(delivery.answered.is_some());
        }
        assert_eq!((sent, got, waiting), ([1000; AGENTS], [1000; AGENTS], [WAITING; AGENTS]));
        assert!((5_000..10_000).contains(&replies), "{replies}");
    }

    #[test]
    fn volumes_are_those_of_the_issue() {
        for (age, divide, messages, sessions) in [
            (Age::Day, 1, 20_000, 25),
            (Age::Year, 1, 7_300_000, 9_125),
            (Age::Decade, 1, 7_300_000, 9_125),
            (Age::Year, 10, 730_000, 913),
        ] {
            let span = Span::of(age, divide, 1_795_000_000_000);
            assert_eq!((span.messages, span.session_at(u64::MAX) + 1), (messages, sessions), "{age:?}");
        }
    }
}
