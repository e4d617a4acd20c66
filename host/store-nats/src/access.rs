//! The permissions that a machine needs on a server, and no more, for the operator who configures them.
//!
//! Separate users of one account are not enough: a server sends an answer to any subject that the requester names, and
//! a stream that listens there stores it. So each machine gets its own account, in which the subjects of the others do
//! not exist, and imports from the mesh's account the subjects listed here.

use crate::options::NatsOptions;
use crate::subjects;

/// The permissions of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Subjects under which it writes, exclusively, each with the name by which the machine knows it.
    pub writes: Vec<(String, String)>,
    /// Read-only requests, each with the name by which the machine knows it.
    pub asks: Vec<(String, String)>,
    /// The subject of the server's announcements.
    pub hears: String,
    /// The JetStream domain under which the machine knows all this.
    pub domain: String,
}

impl NatsOptions {
    /// The permissions that a machine of this mesh needs.
    pub fn access_of(&self, machine: &str) -> Access {
        let domain = self.prefix.to_ascii_lowercase();
        let map = format!("KV_{}", self.map_bucket());
        let ask = |request: &str, stream: &str| {
            let rest = format!("API.STREAM.{request}.{stream}");
            (format!("$JS.{rest}"), format!("$JS.{domain}.{rest}"))
        };
        let asks =
            ["INFO", "MSG.GET"].iter().flat_map(|request| [ask(request, &self.log_stream()), ask(request, &map)]);
        let (logs, values) =
            (subjects::logs_of_machine(self, machine), subjects::values_of_machine(&self.map_bucket(), machine));
        let values_from_there = subjects::within_domain(&domain, &values);
        Access {
            writes: vec![(logs.clone(), logs), (values, values_from_there)],
            asks: asks.collect(),
            hears: subjects::news(self),
            domain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_writes_under_its_own_name_alone() {
        let access = NatsOptions::default().access_of("one");
        let writes: Vec<(&str, &str)> =
            access.writes.iter().map(|(subject, known)| (subject.as_str(), known.as_str())).collect();
        let values = ("$KV.RELAY_MAP.one.>", "$JS.relay.API.$KV.RELAY_MAP.one.>");
        assert_eq!(writes, [("relay.one.>", "relay.one.>"), values]);
        assert_eq!(access.hears, "relay-news.>");
        let ask = ("$JS.API.STREAM.MSG.GET.KV_RELAY_MAP", "$JS.relay.API.STREAM.MSG.GET.KV_RELAY_MAP");
        assert!(access.asks.contains(&(ask.0.to_owned(), ask.1.to_owned())), "{access:?}");
        assert!(access.asks.iter().all(|(ask, _)| !ask.contains('>') && !ask.contains('*')), "{access:?}");
    }
}
