//! Builds an install plan from what the files hold now.
