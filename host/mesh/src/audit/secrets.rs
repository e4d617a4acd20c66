//! Strikes out what looks like a secret. It is better to lose a word of a log than to keep a key in it.

/// What stands in the place of a secret.
const STRUCK: &str = "[secret]";

/// What keys and tokens of well-known services begin with, and how long such a word is at least.
const PREFIXES: [(&str, usize); 27] = [
    ("sk-", 16),
    ("sk_", 16),
    ("pk_", 16),
    ("rk_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xoxs-", 16),
    ("xapp-", 16),
    ("akia", 16),
    ("asia", 16),
    ("aiza", 20),
    ("ya29.", 16),
    ("npm_", 20),
    ("pypi-", 20),
    ("hf_", 16),
    ("xai-", 16),
    ("gsk_", 16),
    ("dop_v1_", 20),
    ("eyj", 24),
];

/// What is said to be secret by the word before it.
const NAMES: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "private_key",
    "authorization",
    "credential",
];

/// A text without what looks like keys, tokens and passwords.
pub fn struck(text: &str) -> String {
    let text = without_private_keys(text);
    let mut out = String::with_capacity(text.len());
    // The name of a secret comes before it, with little between the two.
    let mut named = false;
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let word = rest.find(is_between).unwrap_or(rest.len());
        if word == 0 {
            let gap = rest.find(|letter| !is_between(letter)).unwrap_or(rest.len());
            let (between, after) = rest.split_at(gap);
            named &= !between.contains('\n') && !between.contains([';', ',', '&']);
            out.push_str(between);
            rest = after;
            continue;
        }
        let (found, after) = rest.split_at(word);
        let assigned = after.trim_start_matches(['"', '\'', ' ']).starts_with(['=', ':']);
        let is_scheme = matches!(found.to_ascii_lowercase().as_str(), "bearer" | "basic");
        let is_name = is_scheme || (assigned && is_name_of_secret(found));
        if (named && !is_name) || looks_secret(found) {
            out.push_str(STRUCK);
            named = false;
        } else {
            out.push_str(found);
            named = is_name;
        }
        rest = after;
    }
    without_passwords_of_urls(&out)
}

fn is_between(letter: char) -> bool {
    letter.is_whitespace() || "\"'`=:;,()[]{}<>|&?!".contains(letter)
}

fn is_name_of_secret(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    NAMES.iter().any(|name| word.ends_with(name) || word.ends_with(&format!("{name}s")))
}

fn looks_secret(word: &str) -> bool {
    let word = word.trim_end_matches(['.', '/']);
    let small = word.to_ascii_lowercase();
    if PREFIXES.iter().any(|(prefix, least)| small.starts_with(prefix) && word.len() >= *least && has_digit(word)) {
        return true;
    }
    is_random(word)
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// A long word without the shape of a path, an id or a name: digits, small and capital letters by turns.
fn is_random(word: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"+/_-.~".contains(&byte);
    if word.len() < 32 || !word.bytes().all(letters) {
        return false;
    }
    // A path has short parts; an id of ours or of a harness has dashes at fixed places, a digest is all hexadecimal.
    let longest = word.split(['/', '-', '_', '.']).map(str::len).max().unwrap_or(0);
    let is_digest = word.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase());
    let has_a_keys_length = longest >= 24 || word.len() == 40;
    if !has_a_keys_length || (is_digest && matches!(word.len(), 40 | 64)) {
        return false;
    }
    let mut changes = 0;
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let bytes = word.as_bytes();
    for pair in bytes.windows(2) {
        changes += usize::from(kind(pair[0]) != kind(pair[1]));
    }
    has_digit(word) && changes * 5 >= bytes.len()
}

fn without_private_keys(text: &str) -> String {
    const BEGINS: &str = "-----BEGIN ";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEGINS) {
        let (before, key) = rest.split_at(at);
        out.push_str(before);
        let head = &key[..key.floor_char_boundary(80)];
        if !head.contains("PRIVATE KEY") {
            out.push_str(BEGINS);
            rest = &key[BEGINS.len()..];
            continue;
        }
        out.push_str(STRUCK);
        // A key that is cut off is struck out to the end.
        let end = key.find("-----END ").and_then(|end| Some(end + 9 + key[end + 9..].find("-----")? + 5));
        rest = end.map_or("", |end| &key[end..]);
    }
    out.push_str(rest);
    out
}

/// `scheme://user:password@host` without the password.
fn without_passwords_of_urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end =
            after.find(|letter: char| letter.is_whitespace() || "/\"'`<>".contains(letter)).unwrap_or(after.len());
        let (authority, remains) = after.split_at(end);
        match authority.rsplit_once('@').and_then(|(login, host)| Some((login.split_once(':')?.0, host))) {
            Some((user, host)) => out.push_str(&format!("{user}:{STRUCK}@{host}")),
            None => out.push_str(authority),
        }
        rest = remains;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f9_what_looks_like_a_secret_is_struck_out() {
        let jwt =
            concat!("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0");
        let corpus = [
            ("use sk-proj-", "abcdefghijklmnop1234567890ABCD"),
            ("token is ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"),
            ("github_pat_", "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123456789"),
            ("AWS AKIA", "IOSFODNN7EXAMPLE"),
            ("key AIza", "SyA1234567890abcdefghijklmnopqrstuvw"),
            ("slack xoxb-", "123456789012-1234567890123-abcdefABCDEF"),
            ("Authorization: Bearer ", "abc.def"),
            ("authorization=Basic ", "dXNlcjpwYXNz"),
            ("password=", "hunter2"),
            ("DB_PASSWORD: ", "'correct horse'"),
            ("\"api_key\": \"", "k-1"),
            ("export OPENAI_API_KEY=", "whatever"),
            ("postgres://app:", "hunter2@db/x"),
            ("aws ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            ("a random ", "9fB3kLmQ27xZpT5vW8cRd1sYhN6gJ4aE"),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\n",
                "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END OPENSSH PRIVATE KEY-----",
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\n", "MIIEpAIBAAKCAQEA and cut"),
            ("jwt ", jwt),
        ];
        for (before, secret) in corpus {
            let told = struck(&format!("{before}{secret}"));
            let core = secret.trim_matches(['\'', '"']);
            let core = core.split(['@', ' ', '\n']).next().unwrap_or(core);
            assert!(!told.contains(core) && told.contains(STRUCK), "{before}{secret} -> {told}");
        }
    }

    #[test]
    fn what_people_write_stays() {
        for text in [
            "Review the diff of src/main.rs against main, and say what is wrong.",
            "commit 4631062e04d9519e1e6e0ffe8f635e937c552cb372e2b4ea457ddb21e83cfb76",
            "thread 01a2104c-0000-7000-8000-000000000001",
            "message 01M7ZYH2C87XEXAMPLE0000000",
            "the token is missing, and the password too",
            "https://example.com/a/very/long/path/with_many_parts/and-more?page=2",
            "the-quick-brown-fox-jumps-over-the-lazy-dog-again-and-again",
            "host/relay-mesh/src/tool_threads/registry_of_threads.rs",
            "fn update_of_the_record(key: &Key) -> Result<(), StoreError>",
            "",
        ] {
            assert_eq!(struck(text), text);
        }
    }
}
