//! What a person does with keys and mouse, and what has to be done outside for it.

use super::rows::Tab;
use super::state::Pane;
use super::typing::Compose;

/// What a person does. A terminal makes these of keys, a page of clicks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Press {
    /// Moves in the list that has the focus, or scrolls the text.
    Move(isize),
    /// To the first item.
    First,
    /// To the last item.
    Last,
    /// To the next pane, or back.
    Pane(isize),
    /// To the next tab, or back.
    Tab(isize),
    /// Opens what is chosen; ends what is typed.
    Enter,
    /// Leaves what is open, typed or narrowed down.
    Leave,
    /// Begins a search.
    Search,
    /// Begins a message.
    Compose,
    /// Begins an answer.
    Answer,
    /// Agrees to a question.
    Yes,
    /// Refuses a question.
    No,
    /// Wakes an agent.
    Wake,
    /// Pauses an agent, or lets it go on.
    Pause,
    /// Begins to write a conversation into a file.
    Export,
    /// Shows what is chosen on the page, in a browser.
    Browse,
    /// Shows all keys, or no more.
    Help,
    /// Ends the view.
    Quit,
    /// Gives a pane the focus.
    Focus(Pane),
    /// Shows a tab.
    ShowTab(Tab),
    /// Chooses an agent by its place among those that are listed.
    ChooseAgent(usize),
    /// Chooses an item of the middle by its place among those that are listed.
    ChooseItem(usize),
    /// Adds to what is typed.
    Type(String),
    /// Changes what is typed.
    Edit(Edit),
}

/// A change of what is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The cursor goes left.
    Left,
    /// The cursor goes right.
    Right,
    /// The cursor goes to the beginning.
    First,
    /// The cursor goes to the end.
    Last,
    /// The character before the cursor goes.
    Erase,
    /// The word before the cursor goes.
    EraseWord,
    /// Everything before the cursor goes.
    EraseAll,
}

/// What has to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Read a conversation, and again whenever it has changed.
    Open(String),
    /// No conversation is open any more.
    Close,
    /// Search all mail for words.
    Search(String),
    /// Send a message as the user.
    Send {
        /// Where it goes.
        compose: Compose,
        /// The text.
        body: String,
    },
    /// Answer a question as the user.
    Answer {
        /// The question.
        ask: String,
        /// The answer in the words of the command line.
        words: String,
    },
    /// Wake an agent.
    Wake(String),
    /// Pause an agent.
    Pause(String),
    /// Let a paused agent go on.
    Resume(String),
    /// Write a conversation into a file.
    Export {
        /// The conversation.
        thread: String,
        /// The file; its ending says in which form.
        file: String,
    },
    /// Show an address of the page in a browser.
    Browse(String),
    /// End the view.
    Quit,
}
