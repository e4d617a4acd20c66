//! The guard's side of the leash: the order, then a byte for each request, then the end; and the one line that it says there.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as BlockingStream;

use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::order::Order;

/// The byte that asks to stop the program.
pub(crate) const STOP: u8 = b's';

/// What the host wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputRequest {
    Stop,
    /// It is gone.
    Nothing,
}

pub(super) struct Leash(BufReader<UnixStream>);

impl Leash {
    /// The socket that the host has put in the place of standard error. Nothing else writes there from here on.
    pub(super) fn of_standard_error() -> io::Result<Leash> {
        let socket = BlockingStream::from(io::stderr().as_fd().try_clone_to_owned()?);
        socket.set_nonblocking(true)?;
        let leash = UnixStream::from_std(socket)?;
        rustix::stdio::dup2_stderr(std::fs::File::options().write(true).open("/dev/null")?)?;
        Ok(Leash(BufReader::new(leash)))
    }

    /// The order: a line with its length, and so many bytes of JSON.
    pub(super) async fn order(&mut self) -> io::Result<Order> {
        let mut head = String::new();
        self.0.read_line(&mut head).await?;
        let length: usize = head.trim().parse().map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Says something to the host, which may be gone.
    pub(super) async fn say(&mut self, what: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(what) else { return };
        line.push(b'\n');
        let _unheard = self.0.write_all(&line).await;
    }

    /// The next request. Cancelling loses nothing.
    pub(super) async fn request(&mut self) -> InputRequest {
        loop {
            match self.0.read_u8().await {
                Ok(STOP) => return InputRequest::Stop,
                Ok(_) => {}
                Err(_) => return InputRequest::Nothing,
            }
        }
    }
}

/// Lets go of standard input and output, which are the program's alone from here on: the host then sees when it closes
/// them.
pub(super) fn leave_streams() -> io::Result<()> {
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(())
}
