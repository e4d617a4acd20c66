//! The systemd units that run a program whenever the trigger file is written.

use std::path::Path;

/// The unit that watches the trigger file.
pub(super) const PATH_UNIT: &str = "relay-mesh-wake.path";
/// The unit that runs the program.
pub(super) const SERVICE_UNIT: &str = "relay-mesh-wake.service";

pub(super) fn path_unit(trigger: &Path) -> String {
    let trigger = trigger.display().to_string().replace('%', "%%");
    format!(
        "[Unit]\nDescription=relay-mesh: somebody is to be woken\n\n[Path]\nPathChanged={trigger}\n\
         Unit={SERVICE_UNIT}\n\n[Install]\nWantedBy=default.target\n"
    )
}

pub(super) fn service_unit(trigger: &Path, program: &[String]) -> String {
    let words: Vec<String> = program.iter().map(|word| quoted(&word.replace('$', "$$"))).collect();
    let variable = quoted(&format!("RELAY_WAKE_FILE={}", trigger.display()));
    format!(
        "[Unit]\nDescription=relay-mesh: wake whoever listens\n\n[Service]\nType=oneshot\nEnvironment={variable}\n\
         ExecStart={}\n",
        words.join(" ")
    )
}

/// Quotes a word for systemd.
fn quoted(word: &str) -> String {
    let mut quoted = String::from("\"");
    for character in word.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '%' => quoted.push_str("%%"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_stays_what_it_is_whatever_systemd_reads_into_signs() {
        let program = ["/opt/my agent/wake", "100%", "$HOME", "a\"b\\c", "two\nlines"].map(str::to_owned);
        let unit = service_unit(Path::new("/d/50%/trigger"), &program);
        assert!(
            unit.ends_with(
                "Environment=\"RELAY_WAKE_FILE=/d/50%%/trigger\"\n\
                 ExecStart=\"/opt/my agent/wake\" \"100%%\" \"$$HOME\" \"a\\\"b\\\\c\" \"two\\nlines\"\n"
            ),
            "{unit}"
        );
        assert!(path_unit(Path::new("/d/50%/trigger")).contains("PathChanged=/d/50%%/trigger\n"));
    }
}
