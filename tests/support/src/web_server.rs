//! Web servers that answer what a test tells them, and a proxy.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A web server that answers what a test tells it.
pub struct WebServer {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<WebRequest>>>,
}

/// A request, as it came.
#[derive(Clone, Debug)]
pub struct WebRequest {
    pub method: String,
    pub target: String,
    headers: Vec<(String, String)>,
}

/// What is answered.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// What the head says of the body's length, if that is not the truth.
    length: Option<u64>,
}

impl WebRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A part of the query.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        Some(found.replace("%3A", ":").replace("%2F", "/").replace("%2C", ",").replace('+', " "))
    }
}

impl Reply {
    pub fn of(status: u16, body: impl AsRef<[u8]>) -> Reply {
        Reply { status, headers: Vec::new(), body: body.as_ref().to_vec(), length: None }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Says a length that is not that of the body.
    #[must_use]
    pub fn saying(self, length: u64) -> Reply {
        Reply { length: Some(length), ..self }
    }
}

impl WebServer {
    /// Starts one on a free port of this machine.
    ///
    /// # Panics
    /// If this machine has none.
    pub fn start(answer: impl Fn(&WebRequest) -> Reply + Send + 'static) -> WebServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Who hangs up early has had enough.
                let _ = serve(stream, &answer, &notes);
            }
        });
        WebServer { address, asked }
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<WebRequest> {
        self.asked.lock().expect("no panic").clone()
    }
}

fn serve(
    mut stream: TcpStream,
    answer: &impl Fn(&WebRequest) -> Reply,
    notes: &Mutex<Vec<WebRequest>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    lines.read_line(&mut first)?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let request = WebRequest { method, target, headers };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    lines.take(length).read_to_end(&mut Vec::new())?;
    let reply = answer(&request);
    notes.lock().expect("no panic").push(request);
    let length = reply.length.unwrap_or(reply.body.len() as u64);
    write!(stream, "HTTP/1.1 {} x\r\ncontent-length: {length}\r\nconnection: close\r\n", reply.status)?;
    for (name, value) in &reply.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    stream.write_all(b"\r\n")?;
    stream.write_all(&reply.body)
}

/// A proxy of HTTP that lets everything through, and notes to where.
pub struct Proxy {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts one on a free port of this machine.
    ///
    /// # Panics
    /// If this machine has none.
    pub fn start() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let notes = Arc::clone(&notes);
                std::thread::spawn(move || pass(stream, &notes));
            }
        });
        Proxy { address, asked }
    }

    /// To where it was asked for a way so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

fn pass(mut client: TcpStream, notes: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head);
    let target = text.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut server = TcpStream::connect(&target)?;
    notes.lock().expect("no panic").push(target);
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut from, mut to) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    std::io::copy(&mut client, &mut server).map(drop)
}
