//! What the system knows of a process that runs.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::Duration;

use crate::Failure;

/// A long-lived process, ended when it is no longer needed.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing left to do.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Resident memory of a process, in megabytes of a million bytes.
pub struct Resident {
    /// All of it.
    pub all: f64,
    /// The part that is the process's own: not mapped from a file.
    pub own: f64,
}

impl Resident {
    /// The same beside the part that is its own.
    pub fn remark_on_all(&self) -> String {
        format!(" ({:.1} MB resident with what it maps of the program's file, which all its processes share)", self.all)
    }

    /// What a report says beside the number.
    pub fn remark(&self) -> String {
        format!(" ({:.1} MB of it the process's own, the rest mapped from files)", self.own)
    }
}

/// Looks at a process.
pub fn resident(pid: u32) -> Result<Resident, Failure> {
    let status = BufReader::new(std::fs::File::open(format!("/proc/{pid}/status"))?);
    let lines: Vec<String> = status.lines().collect::<Result<_, _>>()?;
    let field = |name: &str| {
        let line = lines.iter().find(|line| line.starts_with(name)).ok_or_else(|| format!("no {name} of {pid}"))?;
        let kibibytes: f64 = line.split_whitespace().nth(1).ok_or("an empty field")?.parse()?;
        Ok::<f64, Failure>(kibibytes * 1024.0 / 1e6)
    };
    Ok(Resident { all: field("VmRSS:")?, own: field("RssAnon:")? })
}

/// A process's share of the memory that it maps, in megabytes of a million bytes: a page that two processes map counts
/// half for each.
pub fn proportional(pid: u32) -> Result<f64, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text.lines().find(|line| line.starts_with("Pss:")).ok_or_else(|| format!("no share of {pid}"))?;
    let kibibytes: f64 = line.split_whitespace().nth(1).ok_or("an empty field")?.parse()?;
    Ok(kibibytes * 1024.0 / 1e6)
}

/// Whether a child has ended and still waits to be reaped. What the system knows of it can be read until then.
pub fn is_zombie(pid: u32) -> Result<bool, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("a line without a name")?;
    Ok(fields.trim_start().starts_with('Z'))
}

/// The processor time that a process has used so far. The system counts in hundredths of a second.
pub fn processor_time(pid: u32) -> Result<Duration, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The program's name stands in parentheses and may contain anything.
    let (_, fields) = stat.rsplit_once(')').ok_or("a line without a name")?;
    let ticks = |place: usize| -> Result<u64, Failure> {
        Ok(fields.split_whitespace().nth(place).ok_or("a short line")?.parse()?)
    };
    Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}
