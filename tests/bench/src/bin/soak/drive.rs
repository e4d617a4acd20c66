//! What happens in a soak: who sends, types, leaves and is killed, chosen at random.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use bench::report::Report;
use serde_json::Value;
use test_support::Stage;

use crate::chance::Chance;
use crate::ledger::Seen;
use crate::player::{Kind, Player, Return};

/// How long the clients may take in the end to read what waits.
const LAST_WORDS: Duration = Duration::from_secs(480);
const BETWEEN_PROMPTS_AT_THE_END: Duration = Duration::from_secs(20);
/// After so many prompts, a user opens the session of the agent again.
const PROMPTS_IN_VAIN: usize = 4;

/// What happened, for the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    Sent,
    Prompt,
    Esc,
    Kill,
    Leave,
    Clear,
    Resume,
    Anew,
}

/// A run under way, or finished.
pub(crate) struct Drive<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) players: Vec<Player<'a>>,
    /// What the models were told, in order.
    pub(crate) seen: Vec<Seen>,
    /// The ids of what the shell sent, each with its recipient.
    pub(crate) sent: Vec<(String, String)>,
    pub(crate) deeds: BTreeMap<(Kind, Deed), usize>,
    chance: Chance,
    number: usize,
    report: &'a Report,
}

impl<'a> Drive<'a> {
    /// Opens all clients, one after another, and has them join.
    pub(crate) fn start(relay_mesh: &Path, kinds: &[Kind], chance: Chance, report: &'a Report) -> Drive<'a> {
        // It lives as long as this program, in a folder that ends with it.
        let stage: &Stage = Box::leak(Box::new(Stage::new(&relay_mesh.display().to_string())));
        for kind in kinds {
            stage.relay_ok(&["install", kind.name(), "--project", &stage.project_path(), "--yes"]);
        }
        let mut players = Vec::new();
        for number in 1..=2 {
            for kind in kinds {
                players.push(Player::join(stage, *kind, number));
                report.row(&format!("joined: {} ({})", players[players.len() - 1].name, kind.name()));
            }
        }
        Drive { stage, players, seen: Vec::new(), sent: Vec::new(), deeds: BTreeMap::new(), chance, number: 0, report }
    }

    /// Goes on for so long, and then lets everybody read what waits.
    pub(crate) fn run(mut self, length: Duration) -> Drive<'a> {
        let began = Instant::now();
        let mut told = began;
        while began.elapsed() < length {
            self.step();
            std::thread::sleep(Duration::from_millis(200 + self.chance.below(1_300) as u64));
            self.come_back();
            self.collect();
            if told.elapsed() > Duration::from_secs(60) {
                told = Instant::now();
                self.tell(began);
            }
        }
        self.read_the_rest(began);
        self
    }

    fn tell(&self, began: Instant) {
        let waiting: Vec<String> = self
            .players
            .iter()
            .map(|player| {
                let open = if player.is_open() { "" } else { " (away)" };
                format!("{}{open}: {} wait", player.name, player.agent()["waiting"])
            })
            .collect();
        let (minutes, sent) = (began.elapsed().as_secs() / 60, self.number);
        self.report.row(&format!("{minutes} min, {sent} asked for; {}", waiting.join(", ")));
    }

    fn step(&mut self) {
        let at = self.chance.below(self.players.len());
        match self.chance.below(100) {
            0..=43 => {
                let many = if self.chance.percent(8) { 5 } else { 1 };
                (0..many).for_each(|_| self.send(at));
            }
            44..=59 => {
                let to = self.chance.below(self.players.len());
                let to = self.players[to].name.clone();
                self.number += 1;
                let words = format!("soak: write to {to} {}.", self.number);
                self.prompt(at, &words);
            }
            60..=71 => self.prompt(at, "soak: work for a while."),
            72..=79 => self.prompt(at, "Go on."),
            80..=87 => {
                if self.players[at].interrupt() {
                    self.count(at, Deed::Esc);
                }
            }
            88..=92 => {
                let back = self.back();
                let app_server_too = self.chance.percent(40);
                if self.players[at].is_open() {
                    self.players[at].kill(app_server_too, back);
                    self.count(at, Deed::Kill);
                }
            }
            93..=94 => {
                let back = self.back();
                if self.players[at].is_open() {
                    let deed = if self.players[at].leave(back) { Deed::Leave } else { Deed::Kill };
                    self.count(at, deed);
                }
            }
            _ => {
                if self.players[at].clear() {
                    self.count(at, Deed::Clear);
                }
            }
        }
    }

    fn back(&mut self) -> Instant {
        Instant::now() + Duration::from_millis(500 + self.chance.below(25_000) as u64)
    }

    fn count(&mut self, at: usize, deed: Deed) {
        *self.deeds.entry((self.players[at].kind, deed)).or_default() += 1;
    }

    fn prompt(&mut self, at: usize, words: &str) {
        if self.players[at].is_open() {
            self.players[at].prompt(words);
            self.count(at, Deed::Prompt);
        }
    }

    fn send(&mut self, at: usize) {
        self.number += 1;
        let to = self.players[at].name.clone();
        let priority = match self.chance.below(100) {
            0..=79 => "normal",
            80..=90 => "low",
            91..=94 => "high",
            _ => "urgent",
        };
        let body = format!("soak message {} of a shell", self.number);
        let sent = self.stage.run(&["send", &to, &body, "--priority", priority, "--json"]);
        let told: Value = serde_json::from_str(&sent.stdout).unwrap_or_default();
        if let (Some(0), Some(id)) = (sent.code, told["id"].as_str()) {
            self.sent.push((id.to_owned(), to));
            self.count(at, Deed::Sent);
        } else {
            self.report.row(&format!("not sent to {to}: {}", sent.stderr.trim()));
        }
    }

    fn come_back(&mut self) {
        for at in 0..self.players.len() {
            if self.players[at].away_until.is_some_and(|back| Instant::now() >= back) {
                match self.players[at].come_back() {
                    Ok(Return::Resumed) => self.count(at, Deed::Resume),
                    Ok(Return::Anew) => self.count(at, Deed::Anew),
                    Err(why) => self.report.row(&format!("{} was not opened: {why}", self.players[at].name)),
                }
            }
        }
    }

    fn collect(&mut self) {
        for (at, player) in self.players.iter().enumerate() {
            self.seen.extend(player.model.take_heard().iter().map(|heard| Seen::of(at, heard)));
        }
    }

    /// Everybody is here and is prompted until nothing waits for them.
    fn read_the_rest(&mut self, began: Instant) {
        let until = Instant::now() + LAST_WORDS;
        let mut prompted = vec![(0, None::<Instant>); self.players.len()];
        while Instant::now() < until {
            for player in &mut self.players {
                player.away_until = player.away_until.map(|_| Instant::now());
            }
            self.come_back();
            self.collect();
            let mut all_read = true;
            for (at, prompted) in prompted.iter_mut().enumerate() {
                let waits = self.players[at].agent()["waiting"].as_u64().unwrap_or(1) > 0;
                all_read &= !waits;
                let (times, last) = prompted;
                let lately = last.is_some_and(|when| when.elapsed() < BETWEEN_PROMPTS_AT_THE_END);
                if waits && !lately && !self.players[at].works() {
                    *last = Some(Instant::now());
                    *times += 1;
                    // Its terminal may show another session than its agent's: OpenCode's agents stay with theirs.
                    if *times % PROMPTS_IN_VAIN == 0 && self.players[at].is_open() {
                        self.players[at].leave(Instant::now());
                    } else {
                        self.prompt(at, "Is anything left?");
                    }
                }
            }
            if all_read {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        // The last requests may still be under way.
        std::thread::sleep(Duration::from_secs(2));
        self.collect();
        self.tell(began);
    }
}
