//! The thread that draws and the thread that waits for the terminal.

use std::io::{self, BufWriter};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};
use view::live::{Effect, Live, News};

use crate::draw::{Screen, draw};
use crate::keys::presses;
use crate::palette::Palette;
use crate::terminal::TerminalGuard;

/// So much is taken in before the screen is drawn again, so that a flood of news still shows something.
const AT_ONCE: usize = 256;
/// A frame is written in one piece, if it is no larger than this.
const WRITTEN_AT_ONCE: usize = 64 * 1024;
/// The shortest time between two frames that only news ask for: each costs half a millisecond. The first news after a
/// pause is on screen at once, and so is what a key does.
const FRAME: Duration = Duration::from_millis(80);

/// What the drawing thread waits for.
#[derive(Debug)]
enum Incoming {
    /// Something new of the mesh.
    News(Box<News>),
    /// A key, the mouse, another size.
    Terminal(Event),
    /// The view has to end.
    Stop,
}

/// What brings news to a view.
#[derive(Clone, Debug)]
pub struct NewsSender(Sender<Incoming>);

impl NewsSender {
    /// Shows something new.
    pub fn tell(&self, news: News) {
        // A view that is over shows nothing.
        let _over = self.0.send(Incoming::News(Box::new(news)));
    }
}

/// A view that is shown. It ends when its user quits, when it is stopped, and when the terminal is gone; then it drops the
/// function that carries out its effects.
#[derive(Debug)]
pub struct View {
    incoming: Sender<Incoming>,
    drawing: thread::JoinHandle<io::Result<()>>,
}

impl View {
    /// Takes the terminal and shows a mesh of which nothing is known yet. `carry_out` is called for what has to be done outside;
    /// it must not wait for anything.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be taken, or no thread can be started.
    pub fn start(palette: Palette, carry_out: impl FnMut(Effect) + Send + 'static) -> io::Result<View> {
        let taken = TerminalGuard::take()?;
        let (incoming, news) = channel();
        let keys = incoming.clone();
        // It waits for the terminal until the process ends: nothing else could wake it.
        thread::Builder::new().name("ui-keys".to_owned()).spawn(move || read_keys(&keys))?;
        let drawing = thread::Builder::new().name("ui-draw".to_owned()).spawn(move || {
            let mut carry_out = carry_out;
            let outcome = show(palette, &news, &mut carry_out);
            drop(taken);
            // Who waits for the end hears of it by this, when the terminal has been given back.
            drop(carry_out);
            outcome
        })?;
        Ok(View { incoming, drawing })
    }

    /// What brings news to it.
    pub fn news(&self) -> NewsSender {
        NewsSender(self.incoming.clone())
    }

    /// Ends the view. It gives the terminal back before it is over.
    pub fn stop(&self) {
        // It may be over already.
        let _over = self.incoming.send(Incoming::Stop);
    }

    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// If the terminal could not be drawn to any more.
    pub fn join(self) -> io::Result<()> {
        self.drawing.join().unwrap_or_else(|_| Err(io::Error::other("the view panicked")))
    }
}

fn read_keys(incoming: &Sender<Incoming>) {
    loop {
        let next = event::read().map_or(Incoming::Stop, Incoming::Terminal);
        let is_last = matches!(next, Incoming::Stop);
        if incoming.send(next).is_err() || is_last {
            return;
        }
    }
}

fn show(palette: Palette, incoming: &Receiver<Incoming>, carry_out: &mut impl FnMut(Effect)) -> io::Result<()> {
    let mut terminal = Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(WRITTEN_AT_ONCE, io::stdout())))?;
    let (mut live, mut screen) = (Live::default(), Screen::of(palette));
    loop {
        terminal.draw(|frame| {
            let beyond = draw(frame, &live, &mut screen);
            live.fit_detail(beyond);
        })?;
        let drawn = Instant::now();
        // The sender of keys lives as long as this.
        let Ok(mut next) = incoming.recv() else { return Ok(()) };
        let (mut is_awaited, mut taken) = (false, 1);
        loop {
            match next {
                Incoming::Stop => return Ok(()),
                Incoming::News(news) => live.take(*news),
                Incoming::Terminal(event) => {
                    is_awaited = true;
                    for press in presses(&event, &live, &screen) {
                        for effect in live.press(press) {
                            if effect == Effect::Quit {
                                return Ok(());
                            }
                            carry_out(effect);
                        }
                    }
                }
            }
            if taken == AT_ONCE {
                break;
            }
            let wait = if is_awaited { Duration::ZERO } else { FRAME.saturating_sub(drawn.elapsed()) };
            let Ok(more) = incoming.recv_timeout(wait) else { break };
            next = more;
            taken += 1;
        }
    }
}
