//! What the user of a view has asked for and is not done yet.

use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use view::live::News;

/// Works at once on everything that was asked for.
pub(super) struct Work<'a> {
    /// Each says at its end what would have been lost without it.
    running: FuturesUnordered<LocalBoxFuture<'a, (Option<String>, News)>>,
    /// What would be lost if it were not done.
    pending: Vec<String>,
}

impl<'a> Work<'a> {
    pub(super) fn none() -> Work<'a> {
        Work { running: FuturesUnordered::new(), pending: Vec::new() }
    }

    pub(super) fn is_done(&self) -> bool {
        self.running.is_empty()
    }

    /// Works on this too. `loss` names what is lost if it is not done; none for what only the view would show.
    pub(super) fn begin(&mut self, loss: Option<String>, doing: impl Future<Output = News> + 'a) {
        self.pending.extend(loss.clone());
        self.running.push(Box::pin(async move { (loss, doing.await) }));
    }

    /// What came of the next that ends; none if there is nothing to do. Cancelling loses nothing.
    pub(super) async fn next(&mut self) -> Option<News> {
        self.ended().await.map(|(_, news)| news)
    }

    async fn ended(&mut self) -> Option<(Option<String>, News)> {
        let (loss, news) = self.running.next().await?;
        if let Some(at) = self.pending.iter().position(|pending| Some(pending) == loss.as_ref()) {
            self.pending.remove(at);
        }
        Some((loss, news))
    }

    /// Works until nothing would be lost any more, or until `enough`. Says what has failed and what is not done.
    pub(super) async fn finish(mut self, enough: impl Future<Output = ()>) -> Vec<String> {
        let mut told = Vec::new();
        let all = async {
            while !self.pending.is_empty() {
                match self.ended().await {
                    Some((Some(loss), News::Failed(why))) => told.push(format!("{loss}: {why}")),
                    Some(_) => {}
                    None => return,
                }
            }
        };
        tokio::select! {
            biased;
            () = all => {}
            () = enough => {}
        }
        told.extend(self.pending.iter().map(|loss| format!("{loss}: it was not done in time, and may not be done")));
        told
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_would_be_lost_is_finished_and_what_fails_or_takes_too_long_is_said() {
        let mut work = Work::none();
        let slow = async {
            sleep(Duration::from_secs(1)).await;
            News::Done("sent to bob".to_owned())
        };
        work.begin(Some("the message to bob".to_owned()), slow);
        work.begin(Some("the message to carol".to_owned()), ready(News::Failed("there is no carol".to_owned())));
        work.begin(Some("the answer `8080`".to_owned()), pending());
        work.begin(None, ready(News::Failed("nothing is found".to_owned())));
        assert_eq!(
            work.finish(sleep(Duration::from_secs(10))).await,
            [
                "the message to carol: there is no carol",
                "the answer `8080`: it was not done in time, and may not be done"
            ]
        );
    }

    #[tokio::test]
    async fn what_only_the_view_would_show_is_not_waited_for() {
        let mut work = Work::none();
        work.begin(None, pending());
        work.begin(Some("the message to bob".to_owned()), ready(News::Done("sent to bob".to_owned())));
        assert_eq!(work.finish(pending()).await, Vec::<String>::new());
    }
}
