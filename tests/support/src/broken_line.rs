//! A connection to a server that breaks once, at a place that a test names.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// Where the connection breaks, on which a request has this text.
#[derive(Clone, Copy, Debug)]
pub enum Breaks {
    /// After the client got bytes of the response with this text.
    After(&'static str),
    /// Before it gets them, although the server has sent them.
    Before(&'static str),
}

/// A port that leads to a server. Every connection but the broken one is carried to its end.
pub struct BrokenLine {
    pub port: u16,
    /// Tells that a response to such a request has begun.
    pub begun: mpsc::Receiver<()>,
    has_broken: Arc<AtomicBool>,
}

impl BrokenLine {
    /// It breaks once, under a request that has the text `under`.
    pub fn to(server: u16, under: &'static str, at: Breaks) -> BrokenLine {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
        let port = listener.local_addr().expect("it is bound").port();
        let (tell, begun) = mpsc::channel();
        let has_broken = Arc::new(AtomicBool::new(false));
        let broken = Arc::clone(&has_broken);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let is_meant = Arc::new(AtomicBool::new(false));
                let (from, to) = (clone(&client), clone(&server));
                let seen = Arc::clone(&is_meant);
                std::thread::spawn(move || {
                    carry(from, to, |bytes| {
                        seen.fetch_or(holds(bytes, under), Ordering::SeqCst);
                        None
                    });
                });
                let (tell, broken) = (tell.clone(), Arc::clone(&broken));
                std::thread::spawn(move || {
                    carry(server, client, |bytes| {
                        if !is_meant.load(Ordering::SeqCst) {
                            return None;
                        }
                        let (place, forwards) = match at {
                            Breaks::After(place) => (place, true),
                            Breaks::Before(place) => (place, false),
                        };
                        let breaks = holds(bytes, place) && !broken.swap(true, Ordering::SeqCst);
                        // Nobody may wait for it any more.
                        let _told = tell.send(());
                        breaks.then_some(forwards)
                    });
                });
            }
        });
        BrokenLine { port, begun, has_broken }
    }

    pub fn has_broken(&self) -> bool {
        self.has_broken.load(Ordering::SeqCst)
    }
}

/// Carries bytes until one side closes, or `breaks` says so, and whether these bytes still pass.
fn carry(mut from: TcpStream, mut to: TcpStream, breaks: impl Fn(&[u8]) -> Option<bool>) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let broken = breaks(&bytes[..count]);
        if broken != Some(false) && to.write_all(&bytes[..count]).is_err() || broken.is_some() {
            break;
        }
    }
    for side in [&from, &to] {
        // It may be closed already.
        let _closed = side.shutdown(Shutdown::Both);
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a descriptor is free")
}
