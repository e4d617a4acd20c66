//! Setting harnesses up and proving that they work: what `install` and `doctor` decide and show.

pub(crate) mod agreement;
pub(crate) mod carry;
pub(crate) mod changes;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod installed;
pub(crate) mod nats_conf;
pub(crate) mod place;
pub(crate) mod request;
pub(crate) mod shapes;
pub(crate) mod survey;
