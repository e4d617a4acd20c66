//! Misdeeds, and honest uses of every host function.

use crate::exports::relay::adapter::hooks::Call;
use crate::relay::adapter::types::{Error, Session};
use crate::relay::adapter::{channels, clock, files, http, log, notices, programs, state};

/// Does what the words say, and returns the result.
pub fn perform(deed: &str, call: &Call) -> Result<String, Error> {
    let words: Vec<&str> = deed.split(' ').collect();
    match words.as_slice() {
        ["trap"] => core::arch::wasm32::unreachable(),
        ["panic"] => panic!("on purpose"),
        ["exit"] => std::process::exit(3),
        ["loop"] => loop {
            core::hint::black_box(0);
        },
        ["recurse"] => Ok(recurse(1).to_string()),
        ["grow"] => {
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1_u8; 1 << 20]);
                core::hint::black_box(&kept);
            }
        }
        // SAFETY: none; this is what a component in another language may do by mistake.
        ["no-text"] => Ok(unsafe { String::from_utf8_unchecked(vec![b'a', 0xff, 0xfe]) }),
        ["giant"] => Ok("x".repeat(20 << 20)),
        ["flood"] => {
            for line in 0..1_000_000 {
                log::write(log::Level::Info, &format!("line {line}"));
            }
            Ok("flooded".to_owned())
        }
        ["sleep"] => {
            std::thread::sleep(std::time::Duration::from_secs(3600));
            Ok("slept".to_owned())
        }
        ["wait"] => {
            // Time in which the component waits for the host does not count.
            let ran = programs::run("echo", &["waited".to_owned()], b"")?;
            Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
        }
        ["ambient"] => {
            println!("to nowhere");
            let folders = std::fs::read_dir("/").map_or(0, Iterator::count);
            let network = std::net::TcpStream::connect("127.0.0.1:80").is_ok();
            Ok(format!("{} {} {folders} {network}", std::env::vars().count(), std::env::args().count()))
        }
        ["environment"] => Ok(call.environment.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ")),
        ["say", words] => Ok(decoded(words)),
        ["clock"] => Ok(clock::now().to_string()),
        ["file", root, path] => {
            let bytes = files::Root::open(root)?.read(path)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        ["entries", root, path] => {
            let entries = files::Root::open(root)?.entries(path)?;
            Ok(entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>().join(" "))
        }
        ["roots", root] => {
            let mut kept = Vec::new();
            loop {
                kept.push(files::Root::open(root)?);
            }
        }
        ["state", key, value] => {
            let before = state::get(key)?;
            let swapped = state::swap(key, before.as_deref(), Some(value.as_bytes()))?;
            let stale = state::swap(key, before.as_deref(), None)?;
            let now = state::get(key)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            Ok(format!("{swapped} {stale} {now:?} {:?}", state::keys("")?))
        }
        ["states"] => {
            for number in 0.. {
                state::swap(&format!("key-{number}"), None, Some(b"x"))?;
            }
            Ok(String::new())
        }
        ["http", origin, port, path] => {
            let request = http::Request {
                origin: (*origin).to_owned(),
                values: vec![(*port).to_owned()],
                method: "GET".to_owned(),
                path: (*path).to_owned(),
                headers: Vec::new(),
                body: Vec::new(),
            };
            let response = http::send(&request)?;
            Ok(format!("{} {}", response.status, String::from_utf8_lossy(&response.body)))
        }
        ["program", name, value] => {
            let outcome = programs::run(name, &[(*value).to_owned()], b"input ")?;
            Ok(format!("{} {}", outcome.exit_code, String::from_utf8_lossy(&outcome.stdout)))
        }
        ["find", name] => Ok(format!("{:?}", programs::find(name)?)),
        ["channel", endpoint, value, frame] => {
            let channel = channels::Channel::open(endpoint, &[(*value).to_owned()])?;
            channel.send(frame)?;
            Ok(format!("{:?}", channel.receive(1000)?))
        }
        ["often", deed @ ..] => {
            // As often as one call allows.
            let deed = deed.join(" ");
            for times in 0..10_000 {
                if let Err(error) = perform(&deed, call) {
                    return Ok(format!("{times} {error:?}"));
                }
            }
            Ok("without end".to_owned())
        }
        ["open", root] => files::Root::open(root).map(|_| String::new()),
        ["note", key] => state::swap(key, state::get(key)?.as_deref(), Some(key.as_bytes())).map(|_| String::new()),
        ["request", origin, port, method, path, header, value] => {
            let header = Some((decoded(header), decoded(value))).filter(|(name, _)| !name.is_empty());
            let request = http::Request {
                origin: decoded(origin),
                values: vec![decoded(port)],
                method: decoded(method),
                path: decoded(path),
                headers: header.into_iter().collect(),
                body: Vec::new(),
            };
            let response = http::send(&request)?;
            Ok(format!("{} {}", response.status, String::from_utf8_lossy(&response.body)))
        }
        ["read", root, path] => {
            let root = files::Root::open(&decoded(root))?;
            let path = decoded(path);
            match root.read(&path) {
                Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
                Err(error) => match root.entries(&path) {
                    Ok(entries) => Ok(entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>().join(" ")),
                    Err(_) => Err(error),
                },
            }
        }
        ["run", name, values @ ..] => {
            let values: Vec<String> = values.iter().map(|value| decoded(value)).collect();
            let outcome = programs::run(&decoded(name), &values, b"")?;
            Ok(format!("{} {}", outcome.exit_code, String::from_utf8_lossy(&outcome.stdout)))
        }
        ["open", endpoint, value] => {
            let channel = channels::Channel::open(&decoded(endpoint), &[decoded(value)])?;
            channel.send("hello")?;
            Ok("sent".to_owned())
        }
        ["steal", key] => {
            let key = decoded(key);
            let found = state::get(&key)?;
            let swapped = state::swap(&key, found.as_deref(), Some(b"mine"))?;
            Ok(format!("{:?} {swapped}", found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())))
        }
        ["log", text] => {
            log::write(log::Level::Info, &decoded(text));
            Ok("logged".to_owned())
        }
        ["network"] => {
            use std::net::{TcpListener, ToSocketAddrs, UdpSocket};
            let bound = TcpListener::bind("127.0.0.1:0").is_ok() || UdpSocket::bind("127.0.0.1:0").is_ok();
            let resolved = ("localhost", 80).to_socket_addrs().is_ok_and(|mut found| found.next().is_some());
            let written = std::fs::write("/tmp/relay-red-team", "x").is_ok() || std::fs::read("/etc/passwd").is_ok();
            Ok(format!("{bound} {resolved} {written}"))
        }
        ["variable", name] => Ok(format!("{:?}", std::env::var(name).ok())),
        ["not-text"] => Ok(unsafe { String::from_utf8_unchecked(vec![b'a', 0xff, 0xfe]) }),
        ["notice"] => notices::show("title", "body").map(|()| "shown".to_owned()),
        _ => Err(Error::Unsupported(format!("no such deed: {deed}"))),
    }
}

/// A word in which `%0d` stands for a byte, so that a word can name any byte, and `%` for nothing.
fn decoded(word: &str) -> String {
    if word == "%" {
        return String::new();
    }
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|two| u8::from_str_radix(core::str::from_utf8(two).ok()?, 16).ok());
        match code.filter(|_| *first == b'%') {
            Some(byte) => (bytes.push(byte), rest = &after[2..]),
            None => (bytes.push(*first), rest = after),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A list whose items all point to one large text: small in the component, huge once it is copied.
pub fn one_text_many_times() -> Vec<Session> {
    let text = "x".repeat(1 << 20);
    let (start, length) = (text.as_ptr().cast_mut(), text.len());
    core::mem::forget(text);
    let session = || Session {
        id: unsafe { String::from_raw_parts(start, length, length) },
        parent: None,
        workdir: String::new(),
        process: None,
        route_hint: None,
    };
    (0..10_000).map(|_| session()).collect()
}

fn recurse(depth: u64) -> u64 {
    if core::hint::black_box(depth) == 0 { 0 } else { 1 + recurse(core::hint::black_box(depth + 1)) }
}
