//! The terminal view.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bench::sampling::median;
use bench::{Failure, process, report::Report};
use test_support::{Program, Running, Stage};

use crate::talk::{AGENTS, Talkers, wakeups};

/// What is to be met.
const ON_SCREEN: Duration = Duration::from_millis(50);
const SHARE: f64 = 2.0;
/// How long the processor time is measured.
const LONG: Duration = Duration::from_secs(30);
/// Two messages are so far apart: each agent writes every five seconds.
const APART: Duration = Duration::from_millis(250);
/// How long something may take to be on screen.
const PATIENCE: Duration = Duration::from_secs(20);

/// The view in a terminal that `script` makes, and everything that it wrote there.
struct View {
    running: Running,
    written: Arc<Mutex<Vec<u8>>>,
    pid: u32,
}

impl View {
    fn start(stage: &Stage) -> Result<View, Failure> {
        let line = format!("stty cols 160 rows 48; exec '{}' ui", stage.binary().display());
        let program = Program::new("script").args(["-qfc", &line, "/dev/null"]).envs(stage.environment());
        let program = program.env("TERM", "xterm-256color").within(&stage.project);
        let mut running = program.start(&stage.folder.join("view.log"));
        let mut output = running.child.stdout.take().ok_or("no pipe")?;
        let written = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&written);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                into.lock().expect("no holder panics").extend_from_slice(&bytes[..count]);
            }
        });
        let mut view = View { running, written, pid: 0 };
        view.shows("Agents", 0)?;
        let children = format!("/proc/{0}/task/{0}/children", view.running.child.id());
        view.pid = std::fs::read_to_string(children)?.trim().parse()?;
        Ok(view)
    }

    fn press(&mut self, keys: &str) -> Result<(), Failure> {
        self.running.child.stdin.as_mut().ok_or("no pipe")?.write_all(keys.as_bytes())?;
        Ok(())
    }

    fn written(&self) -> usize {
        self.written.lock().expect("no holder panics").len()
    }

    /// Waits until a text was written after so many bytes.
    fn shows(&self, text: &str, after: usize) -> Result<(), Failure> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let is_there = {
                let written = self.written.lock().expect("no holder panics");
                written[after..].windows(text.len()).any(|window| window == text.as_bytes())
            };
            if is_there {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Err(format!("{text:?} did not come on screen").into())
    }
}

pub(crate) fn measure(relay_mesh: &Path, messages: usize, report: &Report) -> Result<(), Failure> {
    let stage = Stage::new(&relay_mesh.display().to_string());
    let mut talkers = Talkers::join(&stage);
    talkers.say(0, "beginning")?;
    let mut view = View::start(&stage)?;
    view.shows("beginning", 0)?;
    // The conversation, whose messages are shown then.
    view.press("\t")?;
    let before = view.written();
    view.press("\r")?;
    view.shows("stored", before)?;
    let mut times = Vec::new();
    for number in 0..messages {
        let text = word(number);
        std::thread::sleep(Duration::from_millis(100));
        let before = view.written();
        talkers.say(number, &text)?;
        let began = Instant::now();
        view.shows(&text, before)?;
        times.push(began.elapsed());
    }
    report.time("from stored until it is on screen, p50", median(times), ON_SCREEN);

    let before = process::processor_time(view.pid)?;
    let said = talkers.talk(LONG, APART)?;
    let used = process::processor_time(view.pid)? - before;
    let share = used.as_secs_f64() / LONG.as_secs_f64() * 100.0;
    report.size(&format!("while {AGENTS} agents talk"), share, SHARE, "% of a core", &format!(" ({said} messages)"));

    // They go, and nothing happens any more.
    drop(talkers);
    std::thread::sleep(Duration::from_secs(20));
    let (before, used) = (wakeups(view.pid)?, process::processor_time(view.pid)?);
    std::thread::sleep(LONG);
    let woken = wakeups(view.pid)? - before;
    report.amount("woken while nothing happens, in 30 s", woken as f64, " times", "");
    report.note("processor time in these", process::processor_time(view.pid)? - used);
    Ok(())
}

/// A word of which no letter stands where the last one has it, so that a view that writes only what has changed writes all
/// of it.
fn word(number: usize) -> String {
    let letters = if number.is_multiple_of(2) { b"abcdefghij" } else { b"nopqrstuvw" };
    let digits = format!("{number:08}").into_bytes();
    digits.iter().map(|digit| char::from(letters[usize::from(digit - b'0')])).collect()
}
