//! `relay-mesh reserve`: reserve paths of a repository, or check who holds them.

use std::path::{Path, PathBuf};

use mesh::names::AgentName;
use mesh::reservations::{Mode, Ttl};
use mesh::{Others, Own, Reserve, Reserved};

use crate::command::CommandSpec;
use crate::context::Context;
use crate::duration;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::patterns::meant;
use crate::render::printable_line;
use crate::shapes::reservations::ReservedShape;

/// Reserve paths of a repository
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Patterns start at this folder: `*` and `?` stay within a name, `**` is any number of folders, \
    `{a,b}` is either, `[a-z]` and `[!a-z]` are characters, `\\` makes the next one an ordinary one. \
    A folder stands for everything in it. All worktrees of a repository share its reservations.\n\n\
    Examples:\n  \
    relay-mesh reserve src/parser --from alice --reason 'new grammar'\n  \
    relay-mesh reserve '**/*.{rs,toml}' Cargo.lock --ttl 20m --shared\n  \
    relay-mesh reserve src/parser/lexer.rs --narrow\n  \
    relay-mesh reserve 'src/**' --check || echo 'it is taken'\n\n\
    Exits with 6 if another agent holds any of it; then nothing is reserved."
)]
pub(crate) struct Args {
    /// Paths and patterns; all of them are reserved, or none
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<String>,
    /// A folder of another repository, at which the patterns then start
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Let others hold it too, if they share it
    #[arg(long)]
    shared: bool,
    /// For how long, up to a week; reserve again to renew
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = ttl)]
    ttl: Ttl,
    /// What for: shown to agents that want the same
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Take it from the agents that hold it; they are told
    #[arg(long, conflicts_with = "check")]
    force: bool,
    /// Give up your other reservations that overlap: a wide reservation becomes a narrow one
    #[arg(long, conflicts_with = "check")]
    narrow: bool,
    /// Only say who is in the way, and reserve nothing
    #[arg(long)]
    check: bool,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session]
    #[arg(long, visible_alias = "agent", value_name = "AGENT")]
    from: Option<AgentName>,
}

fn ttl(text: &str) -> Result<Ttl, String> {
    let span = duration::typed(text).ok_or_else(|| "write it as `90s`, `20m`, `2h` or `1d`".to_owned())?;
    Ttl::new(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)).map_err(|error| error.to_string())
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let folder = folder(context, self.repo);
        let (repository, patterns) = meant(&open.mesh, &folder, &self.patterns)?;
        let caller = context.principal(&open, self.from).await?;
        let mode = if self.shared { Mode::Shared } else { Mode::Exclusive };
        if self.check {
            let conflicts = open.mesh.check_reservation(&caller, &repository, &patterns, mode).await?;
            let shape = ReservedShape::checked(&repository, &conflicts, open.mesh.machine().now());
            context.printer.show(&shape)?;
            return Ok(if conflicts.is_empty() { Exit::Success } else { Exit::Held });
        }
        let wanted = Reserve {
            repository: repository.clone(),
            patterns,
            mode,
            ttl: self.ttl,
            reason: self.reason,
            others: if self.force { Others::Take } else { Others::Respect },
            own: if self.narrow { Own::GiveUp } else { Own::Keep },
        };
        let reserved = open.mesh.reserve(&caller, wanted).await?;
        context.printer.show(&ReservedShape::of(&repository, &reserved, open.mesh.machine().now()))?;
        Ok(match reserved {
            Reserved::Granted { .. } => {
                for typed in self.patterns.iter().filter(|typed| may_become_a_folder(&folder, typed)) {
                    context.printer.say(&format!(
                    "nothing is called `{0}` yet, and a file of that name is reserved; `{0}/` is everything in a folder",
                    printable_line(typed)
                ));
                }
                Exit::Success
            }
            Reserved::Held(_) => {
                context.printer.say("ask them by `relay-mesh send`, wait until it lapses, or take it by `--force`");
                Exit::Held
            }
        })
    }
}

/// Whether nothing has the typed name yet and the name does not look like a file's.
fn may_become_a_folder(folder: &Path, typed: &str) -> bool {
    let is_name = |name: &str| !name.contains(['.', '*', '?', '[', '{', '}', '\\']);
    let last = typed.rsplit('/').next().unwrap_or(typed);
    !last.is_empty() && is_name(last) && !typed.contains(['*', '?', '{']) && !folder.join(typed).exists()
}

/// The folder at which patterns start: `--repo`, else the working folder.
pub(crate) fn folder(context: &Context, repo: Option<PathBuf>) -> PathBuf {
    repo.map_or_else(|| context.workdir.clone(), |folder| context.workdir.join(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_understood_as_people_type_them() {
        for (text, expected) in [
            ("90s", Ok(90_000)),
            ("1h 30m", Ok(5_400_000)),
            ("7d", Ok(7 * 86_400_000)),
            ("0s", Err("a reservation lasts at least a second")),
            ("100years", Err("a reservation lasts at most a week; renew it while you work")),
            ("soon", Err("write it as `90s`, `20m`, `2h` or `1d`")),
        ] {
            let span = ttl(text).map(Ttl::milliseconds);
            assert_eq!(span, expected.map_err(str::to_owned), "{text}");
        }
    }
}
