//! The guard's side of the leash: the order, then a byte for each wish, then the end.

use std::io;
use std::os::fd::AsFd;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe;

use super::order::Order;

/// The byte that asks to stop the program.
pub(crate) const STOP: u8 = b's';

/// What the host wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Stop,
    /// It is gone.
    Nothing,
}

pub(super) struct Leash(BufReader<pipe::Receiver>);

impl Leash {
    pub(super) fn of_standard_input() -> io::Result<Leash> {
        let pipe = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
        Ok(Leash(BufReader::new(pipe)))
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

    /// The next wish. Cancelling loses nothing.
    pub(super) async fn wish(&mut self) -> Wish {
        loop {
            match self.0.read_u8().await {
                Ok(STOP) => return Wish::Stop,
                Ok(_) => {}
                Err(_) => return Wish::Nothing,
            }
        }
    }
}
