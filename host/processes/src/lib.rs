//! Starting, bounding, watching and ending other programs with everything that they started.
//!
//! A program that runs for long is started by a [`guard`]: a process of ours in a session of its own, to which every
//! descendant of the program falls when its parent ends. A program that is asked for one answer is in a [`Group`].
//! Work on what nobody trusts is done by this binary again, [`confined`]. [`git`] runs git for the folders that programs
//! work in.
//!
//! Only this crate may name the system's calls about other processes. It knows nothing of agents, harnesses and stores.

pub mod confined;
pub mod git;
mod group;
pub mod guard;
mod kill;
mod leash;
mod lines;
mod listening;
mod programs;
mod space;
mod system;
mod table;
mod this_program;

pub use group::{Group, end_groups, note_groups_in};
pub use kill::{ask_to_end, end_marked, is_alive};
pub use leash::{Guard, GuardError, Started, ended_as_written};
pub use lines::{LineReader, ReadLine};
pub use listening::variables_of_listener;
pub use programs::{AtTerminal, at_terminals, caller, client, folder_of, open_files, running, runs_below};
pub use space::{Space, lists_own_processes, own_space};
pub use table::{ProcessId, ancestors, ancestors_in_session, find, this_process, this_process_in_full};
pub use this_program::{this_binary, this_program};
