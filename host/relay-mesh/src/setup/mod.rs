//! Setting up harnesses and checking that they work: the logic and output of `install` and `doctor`.

pub(crate) mod agreement;
pub(crate) mod apply;
pub(crate) mod changes;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod installed;
pub(crate) mod nats_conf;
pub(crate) mod project;
pub(crate) mod request;
pub(crate) mod scope_args;
pub(crate) mod shapes;
pub(crate) mod survey;
