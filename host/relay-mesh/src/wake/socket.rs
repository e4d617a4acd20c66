//! The socket: sends one line to the user's own Unix socket.

use std::io;
use std::path::Path;

use tokio::io::AsyncWriteExt;

use crate::unix::UnixStream;

pub(super) async fn tell(path: &Path, line: &[u8]) -> Result<String, String> {
    let told = async {
        let mut stream = UnixStream::connect(path).await?;
        stream.write_all(line).await?;
        stream.shutdown().await
    };
    told.await.map(|()| format!("{} took it", path.display())).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no socket at {}", path.display()),
        io::ErrorKind::ConnectionRefused => format!("no process listens at {}", path.display()),
        _ => format!("{} did not take it: {error}", path.display()),
    })
}
