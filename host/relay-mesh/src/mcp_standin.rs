//! Stands in for the crate mcp until it has landed. Removed with it.
#![allow(dead_code, reason = "removed when the crate has landed")]
use mesh::Mesh;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
pub(crate) struct ClientProcess {
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) workdir: Option<String>,
}
pub(crate) async fn serve_stdio(_: Arc<Mesh>, _: ClientProcess, stop: CancellationToken) -> Result<(), std::io::Error> {
    stop.cancelled().await;
    Ok(())
}
pub(crate) mod http {
    use super::*;
    #[derive(Clone)]
    pub(crate) struct HttpSettings {
        pub(crate) listen: std::net::SocketAddr,
        pub(crate) token: Option<String>,
    }
    impl Default for HttpSettings {
        fn default() -> Self {
            HttpSettings { listen: ([127, 0, 0, 1], 7423).into(), token: None }
        }
    }
    pub(crate) struct Listener(tokio::net::TcpListener);
    impl Listener {
        pub(crate) async fn bind(settings: HttpSettings) -> Result<Listener, std::io::Error> {
            Ok(Listener(tokio::net::TcpListener::bind(settings.listen).await?))
        }
        pub(crate) fn address(&self) -> std::net::SocketAddr {
            self.0.local_addr().expect("bound")
        }
        pub(crate) fn url(&self) -> String {
            format!("http://{}/mcp", self.address())
        }
        pub(crate) async fn serve(self, _: Arc<Mesh>, stop: CancellationToken) -> Result<(), std::io::Error> {
            use tokio::io::AsyncWriteExt;
            loop {
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    Ok((mut stream, _)) = self.0.accept() => { let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await; }
                }
            }
        }
    }
}
