//! Hooks against payloads that the real client wrote, and the rules that no payload may break.
