//! Taking the terminal and giving it back, whatever ends the view.

use std::io::{self, Write as _};
use std::sync::Once;

use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{execute, queue};

/// The terminal while the view has it. Dropping it gives it back.
pub(crate) struct TerminalGuard(());

impl TerminalGuard {
    /// Takes the terminal: keys come one by one, and what was on screen comes back afterwards.
    pub(crate) fn take() -> io::Result<TerminalGuard> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // The message of a panic would be lost on the screen that goes away. The released program ends right
                // after this, without dropping anything.
                restore();
                before(panic);
            }));
        });
        enable_raw_mode()?;
        let taken = TerminalGuard(());
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            Clear(ClearType::All),
            EnableMouseCapture,
            EnableBracketedPaste,
            Hide
        )?;
        Ok(taken)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was. Doing it twice does no harm; a terminal that is gone is not reported.
pub fn restore() {
    let mut out = io::stdout();
    let _gone = queue!(out, DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, Show);
    let _gone = out.flush();
    let _gone = disable_raw_mode();
}
