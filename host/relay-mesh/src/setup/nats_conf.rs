//! Generates a nats-server configuration for a mesh of several machines.
//!
//! It uses accounts, not user permissions: if a stream listens on the reply subject that a requester names, the server
//! stores its answer there. So a user who may request anything could write anything. In its own account a machine can
//! only name its own subjects.

use std::fmt::Write as _;
use std::str::FromStr;

use store_nats::{Access, InvalidName, NatsOptions};

/// A machine and its login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) machine: String,
    /// The public NKey; none if it logs in with a password.
    pub(crate) nkey: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidLogin {
    #[error(transparent)]
    Name(#[from] InvalidName),
    #[error("`{0}` is no public NKey of a user: one begins with U and has 56 letters and digits")]
    Key(String),
}

impl FromStr for Login {
    type Err = InvalidLogin;

    fn from_str(text: &str) -> Result<Login, InvalidLogin> {
        let (machine, nkey) = match text.split_once('=') {
            Some((machine, nkey)) => (machine, Some(nkey)),
            None => (text, None),
        };
        NatsOptions { machine: machine.to_owned(), ..NatsOptions::default() }.check()?;
        if let Some(nkey) = nkey {
            let is_public = nkey.starts_with('U')
                && nkey.len() == 56
                && nkey.bytes().all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte));
            if !is_public {
                // A seed begins with S. It is secret, so the error does not repeat it.
                let shown = if nkey.starts_with('S') { "S…" } else { nkey };
                return Err(InvalidLogin::Key(shown.to_owned()));
            }
        }
        Ok(Login { machine: machine.to_owned(), nkey: nkey.map(str::to_owned) })
    }
}

/// The user who creates the streams.
pub(crate) fn operator(prefix: &str) -> String {
    format!("{}-operator", prefix.to_ascii_lowercase())
}

pub(crate) fn operator_variable(prefix: &str) -> String {
    format!("{}_OPERATOR_PASSWORD", variable(prefix))
}

pub(crate) fn password_variable(machine: &str) -> String {
    format!("RELAY_PASSWORD_{}", variable(machine))
}

/// The whole configuration.
pub(crate) fn render(prefix: &str, logins: &[(Login, Access)]) -> String {
    let mut text = String::from(
        "# A nats-server for relay-mesh, printed by `relay-mesh nats-auth`. Each machine writes under its own name\n\
         # alone. Words with a dollar sign in front are variables that the server reads when it starts (put quotes\n\
         # into a value that is more than letters, digits and dashes); a password may stand there as well, or its\n\
         # bcrypt digest (`nats server passwd`).\n\n\
         # Messages are stored in this folder, relative to where the server is started. Without this line they would\n\
         # be among the temporary files, and lost with them.\n\
         jetstream { store_dir: \"relay-data\" }\n\naccounts {\n",
    );
    let mut line = |depth: usize, words: &str| {
        let _infallible = writeln!(text, "{}{words}", "  ".repeat(depth));
    };
    line(1, &format!("{prefix} {{"));
    line(2, "jetstream: enabled");
    line(2, &format!("users: [{{ user: {}, password: ${} }}]", operator(prefix), operator_variable(prefix)));
    // The operator can also reach the streams by the mesh's domain, from a machine that uses it.
    if let Some((_, access)) = logins.first() {
        line(2, "mappings: {");
        for (known, meant) in [
            ("STREAM.>", "$JS.API.STREAM.>"),
            ("DIRECT.>", "$JS.API.DIRECT.>"),
            ("INFO", "$JS.API.INFO"),
            ("$KV.>", "$KV.>"),
        ] {
            line(3, &format!("\"$JS.{}.API.{known}\": \"{meant}\"", access.domain));
        }
        line(2, "}");
    }
    line(2, "exports: [");
    for (login, access) in logins {
        let accounts = format!("accounts: [{}]", account(prefix, &login.machine));
        for (subject, _) in access.writes.iter().chain(&access.asks) {
            line(3, &format!("{{ service: \"{subject}\", {accounts} }}"));
        }
    }
    let everyone: Vec<String> = logins.iter().map(|(login, _)| account(prefix, &login.machine)).collect();
    if let Some((_, access)) = logins.first() {
        line(3, &format!("{{ stream: \"{}\", accounts: [{}] }}", access.hears, everyone.join(", ")));
    }
    line(2, "]");
    line(1, "}");
    for (login, access) in logins {
        line(1, &format!("{} {{", account(prefix, &login.machine)));
        line(
            2,
            &match &login.nkey {
                Some(nkey) => format!("users: [{{ nkey: {nkey} }}]"),
                None => {
                    format!(
                        "users: [{{ user: \"{}\", password: ${} }}]",
                        login.machine,
                        password_variable(&login.machine)
                    )
                }
            },
        );
        line(2, "imports: [");
        for (subject, known) in access.writes.iter().chain(&access.asks) {
            let to = if known == subject { String::new() } else { format!(", to: \"{known}\"") };
            line(3, &format!("{{ service: {{ account: {prefix}, subject: \"{subject}\" }}{to} }}"));
        }
        line(3, &format!("{{ stream: {{ account: {prefix}, subject: \"{}\" }} }}", access.hears));
        line(2, "]");
        line(1, "}");
    }
    text.push_str("}\n");
    text
}

fn account(prefix: &str, machine: &str) -> String {
    format!("\"{prefix}-{machine}\"")
}

fn variable(word: &str) -> String {
    word.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte.to_ascii_uppercase()) } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use store_nats::NatsOptions;

    use super::*;

    #[test]
    fn each_machine_has_an_account_that_holds_its_own_subjects_and_no_others() {
        let options = NatsOptions::default();
        let nkey = format!("U{}", "A".repeat(55));
        let logins = [
            (Login { machine: "one-1f".to_owned(), nkey: None }, options.access_of("one-1f")),
            (Login { machine: "two".to_owned(), nkey: Some(nkey.clone()) }, options.access_of("two")),
        ];
        let text = render("RELAY", &logins);
        assert!(text.contains("\njetstream { store_dir: \"relay-data\" }\n"), "not among temporary files: {text}");
        let (_, of_one) = text.split_once("\"RELAY-one-1f\" {").expect("an account");
        let (of_one, of_two) = of_one.split_once("\"RELAY-two\" {").expect("another");
        assert!(of_one.contains("user: \"one-1f\", password: $RELAY_PASSWORD_ONE_1F"), "{of_one}");
        for (subject, account) in [("relay.one-1f.>", "RELAY-one-1f"), ("relay.two.>", "RELAY-two")] {
            let lent = format!("{{ service: \"{subject}\", accounts: [\"{account}\"] }}");
            assert!(text.contains(&lent), "to one account alone: {text}");
        }
        assert!(of_one.contains("subject: \"relay.one-1f.>\"") && !of_one.contains(".two."), "{of_one}");
        assert!(of_two.contains(&format!("nkey: {nkey}")) && !of_two.contains("one-1f"), "{of_two}");
    }
}
