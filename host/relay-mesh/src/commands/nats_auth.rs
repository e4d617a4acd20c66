//! `relay-mesh nats-auth`: print a nats-server configuration under which no machine can pose as another.

use mesh::ports::machine::Machine as _;
use store_nats::{Access, NatsOptions};

use crate::command::CommandSpec;
use crate::compose::OpenError;
use crate::config;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::setup::nats_conf::{self, Login};
use crate::shapes::nats_auth::{AuthShape, MachineShape};

/// Print a nats-server configuration under which no machine passes for another
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh nats-auth laptop-4f1c laptop-9a02 > nats.conf\n  \
    relay-mesh nats-auth laptop-4f1c=UDXB6Z2TKZ5SRBPW6P2VHKQDNVYQ5D7DJVJHWZZ6Z5H4YQHMSLQ2NKEY\n  \
    relay-mesh nats-auth --json\n\n\
    Run it without arguments on each machine to learn that machine's name. A name with `=U…` logs in with that \
    public NKey; any other with a password, which the server reads from the variable that the configuration names.\n\n\
    Each machine gets an account of its own, writes only under its own name, reads the whole mesh, and can \
    neither remove nor change what another wrote. docs/nats.md says how to use it.")]
pub(crate) struct Args {
    /// The machines that take part, by the name that relay-mesh gave them [default: this one]
    #[arg(value_name = "MACHINE[=NKEY]")]
    machines: Vec<Login>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let own = context.open()?.machine.name().to_owned();
        let mut machines = self.machines;
        if machines.is_empty() {
            machines.push(Login { machine: own.clone(), nkey: None });
        }
        let mut options = NatsOptions { machine: own.clone(), ..NatsOptions::default() };
        options.prefix = context.settings.nats.prefix.clone().unwrap_or(options.prefix);
        options.check().map_err(OpenError::from)?;
        if let Some(why) = mistaken(&options.prefix, &machines) {
            return Err(CommandError::usage(&why, "name each machine once, as `relay-mesh nats-auth` prints it there"));
        }
        let logins: Vec<(Login, Access)> = machines
            .into_iter()
            .map(|login| {
                let access = options.access_of(&login.machine);
                (login, access)
            })
            .collect();
        let shape = AuthShape {
            machine: own,
            configuration: nats_conf::render(&options.prefix, &logins),
            operator: nats_conf::operator(&options.prefix),
            operator_password: nats_conf::operator_variable(&options.prefix),
            machines: logins.iter().map(MachineShape::of).collect(),
        };
        context.printer.show(&shape)?;
        for step in shape.next_steps(&config::own_file(&context.environment)) {
            context.printer.say(&format!("next: {step}"));
        }
        Ok(Exit::Success)
    }
}

/// Why these logins do not tell the machines apart: a repeated or reserved name, or a shared password or NKey.
fn mistaken(prefix: &str, machines: &[Login]) -> Option<String> {
    for (index, Login { machine: host, nkey }) in machines.iter().enumerate() {
        if *host == nats_conf::operator(prefix) {
            return Some(format!("`{host}` is the name by which the operator logs in"));
        }
        for other in &machines[..index] {
            if other.machine == *host {
                return Some(format!("`{host}` is named twice"));
            }
            let variable = nats_conf::password_variable(host);
            if (nkey, &other.nkey) == (&None, &None) && nats_conf::password_variable(&other.machine) == variable {
                return Some(format!("`{}` and `{host}` would have one password, ${variable}", other.machine));
            }
            if nkey.is_some() && *nkey == other.nkey {
                return Some(format!("`{}` and `{host}` would have one NKey", other.machine));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_has_a_login_of_its_own() {
        let nkey = format!("U{}", "A".repeat(55));
        for (words, expected) in [
            ("one two", None),
            ("one two one", Some("`one` is named twice".to_owned())),
            ("a-b a_b", Some("`a-b` and `a_b` would have one password, $RELAY_PASSWORD_A_B".to_owned())),
            ("a A", Some("`a` and `A` would have one password, $RELAY_PASSWORD_A".to_owned())),
            ("a-b a_b=KEY", None),
            ("one=KEY two=KEY", Some("`one` and `two` would have one NKey".to_owned())),
            ("relay-operator", Some("`relay-operator` is the name by which the operator logs in".to_owned())),
        ] {
            let words = words.replace("KEY", &nkey);
            let machines: Vec<Login> = words.split(' ').map(|word| word.parse().expect("a machine")).collect();
            assert_eq!(mistaken("RELAY", &machines), expected, "{words}");
        }
    }

    #[test]
    fn a_machine_is_a_word_of_a_subject_with_or_without_a_key() {
        let nkey = format!("U{}", "A".repeat(55));
        let not_a_key = |text: &str| {
            format!("`{text}` is no public NKey of a user: one begins with U and has 56 letters and digits")
        };
        for (text, expected) in [
            ("laptop-1".to_owned(), "laptop-1".to_owned()),
            (format!("laptop-1={nkey}"), format!("laptop-1 by {nkey}")),
            (
                "a.b".to_owned(),
                "`a.b` cannot be part of a subject: use letters, digits, - and _, and begin with a letter or a digit"
                    .to_owned(),
            ),
            ("a=UX".to_owned(), not_a_key("UX")),
            (format!("a=S{nkey}"), not_a_key("S…")),
        ] {
            let outcome = match text.parse::<Login>() {
                Ok(Login { machine: host, nkey: Some(nkey) }) => format!("{host} by {nkey}"),
                Ok(Login { machine: host, nkey: None }) => host,
                Err(error) => error.to_string(),
            };
            assert_eq!(outcome, expected);
        }
    }
}
