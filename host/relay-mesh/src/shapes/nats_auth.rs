//! `relay-mesh nats-auth`.

use serde::Serialize;
use store_nats::Access;

use crate::render::Show;
use crate::setup::nats_conf::{self, Login};

/// One machine of the mesh.
#[derive(Debug, Serialize)]
pub(crate) struct MachineShape {
    pub(crate) machine: String,
    /// The public NKey, if it logs in with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nkey: Option<String>,
    /// The variable from which the nats-server reads its password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) password_variable: Option<String>,
    /// The JetStream domain for its settings.
    pub(crate) domain: String,
    /// The subjects that it may write.
    pub(crate) writes: Vec<String>,
}

impl MachineShape {
    pub(crate) fn of((login, access): &(Login, Access)) -> MachineShape {
        MachineShape {
            machine: login.machine.clone(),
            nkey: login.nkey.clone(),
            password_variable: login.nkey.is_none().then(|| nats_conf::password_variable(&login.machine)),
            domain: access.domain.clone(),
            writes: access.writes.iter().map(|(subject, _)| subject.clone()).collect(),
        }
    }
}

/// `relay-mesh nats-auth`.
#[derive(Debug, Serialize)]
pub(crate) struct AuthShape {
    /// The name of this machine.
    pub(crate) machine: String,
    /// The user who creates the streams.
    pub(crate) operator: String,
    /// The variable from which the nats-server reads the operator's password.
    pub(crate) operator_password: String,
    pub(crate) machines: Vec<MachineShape>,
    /// The nats-server configuration.
    pub(crate) configuration: String,
}

impl AuthShape {
    /// What is left to do. `own_file` is the user's settings file on this machine; what another's variables say of its
    /// place is not known here.
    pub(crate) fn next_steps(&self, own_file: &str) -> Vec<String> {
        let mut steps = vec![
            format!("this machine is `{}`; `relay-mesh nats-auth` says the same on each other one", self.machine),
            "start the server by `nats-server -c nats.conf` with those variables set".to_owned(),
            format!(
                "make the streams once: `RELAY_NATS_USER={} RELAY_NATS_PASSWORD=FILE relay-mesh doctor --store \
                 nats://SERVER`",
                self.operator
            ),
        ];
        steps.extend(self.machines.iter().map(|host| {
            let login = match host.nkey {
                Some(_) => "nkey = \"FILE\"".to_owned(),
                None => format!("user = \"{}\", password = \"FILE\"", host.machine),
            };
            let file = if host.machine == self.machine { own_file } else { "~/.config/relay-mesh/config.toml" };
            format!(
                "on `{}`, in {file}: store = \"nats://SERVER\" and in [nats] {login}, domain = \"{}\"",
                host.machine, host.domain
            )
        }));
        steps
    }
}

impl Show for AuthShape {
    fn text(&self) -> String {
        self.configuration.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_this_machine_are_named_where_they_are() {
        let machine = |name: &str| MachineShape {
            machine: name.to_owned(),
            nkey: None,
            password_variable: None,
            domain: "relay".to_owned(),
            writes: Vec::new(),
        };
        let shape = AuthShape {
            machine: "one".to_owned(),
            operator: "relay-operator".to_owned(),
            operator_password: "OPERATOR".to_owned(),
            machines: vec![machine("one"), machine("two")],
            configuration: String::new(),
        };
        let steps = shape.next_steps("~/settings/relay-mesh/config.toml").join("\n");
        assert!(steps.contains("on `one`, in ~/settings/relay-mesh/config.toml: "), "{steps}");
        assert!(steps.contains("on `two`, in ~/.config/relay-mesh/config.toml: "), "{steps}");
    }
}
