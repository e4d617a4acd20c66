//! Signatures, compared with those of another implementation.

use std::io::Cursor;

use wasmsign2::{Module, PublicKey, SecretKey};

use super::*;

/// A component with a custom section, or several.
fn component(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    for (name, payload) in sections {
        bytes.extend(section::custom(name, payload));
    }
    bytes
}

fn key() -> SigningKey {
    SigningKey::generate().expect("random numbers").0
}

/// The same key for the other implementation.
fn theirs(pkcs8: &[u8]) -> SecretKey {
    let (seed, public) = (&pkcs8[16..48], SigningKey::read(pkcs8).expect("a key").publisher().0);
    SecretKey::from_bytes(&[&[0x81], seed, &public].concat()).expect("a key")
}

#[test]
fn what_is_signed_says_by_whom() {
    let key = key();
    let unsigned = component(&[("manifest", b"toad")]);
    assert_eq!(signed(&unsigned), Signed::No);
    let bytes = sign(&unsigned, &key);
    assert_eq!(signed(&bytes), Signed::By(vec![key.publisher()]));
    assert_eq!(sign(&bytes, &key), bytes, "once is enough, and twice the same");
    assert_eq!(section::find(&bytes, "manifest"), Some(&b"toad"[..]));
}

#[test]
fn no_byte_of_what_is_signed_can_be_changed() {
    let bytes = sign(&component(&[("manifest", b"toad"), ("more", b"1")]), &key());
    for index in 8..bytes.len() {
        for bit in [1, 0x80] {
            let mut changed = bytes.clone();
            changed[index] ^= bit;
            let found = signed(&changed);
            // A change of the section's own name or place leaves a file without a signature, which is refused as such.
            assert!(matches!(found, Signed::No | Signed::Broken), "{index}: {found:?}");
        }
    }
    for length in 0..bytes.len() {
        assert!(matches!(signed(&bytes[..length]), Signed::No | Signed::Broken), "{length}");
    }
    let with_more = [bytes.as_slice(), &component(&[("late", b"x")])[8..]].concat();
    assert_eq!(signed(&with_more), Signed::Broken);
}

#[test]
fn a_signature_that_is_not_the_first_section_covers_nothing() {
    let bytes = sign(&component(&[("manifest", b"toad")]), &key());
    let moved = [&bytes[..8], &component(&[("early", b"x")])[8..], &bytes[8..]].concat();
    assert_eq!(signed(&moved), Signed::Broken);
}

#[test]
fn a_publisher_who_changes_the_key_signs_with_both() {
    let (old, new) = (key(), key());
    let bytes = sign(&sign(&component(&[("manifest", b"toad")]), &old), &new);
    let mut both = vec![old.publisher(), new.publisher()];
    both.sort();
    assert_eq!(signed(&bytes), Signed::By(both));
    // What no longer fits is left out: it was over something else.
    let mut changed = bytes;
    changed.extend(&component(&[("late", b"x")])[8..]);
    assert_eq!(signed(&sign(&changed, &new)), Signed::By(vec![new.publisher()]));
}

#[test]
fn the_form_is_that_of_the_tool_conventions() {
    let (key, pkcs8) = SigningKey::generate().expect("random numbers");
    let theirs = theirs(&pkcs8);
    let public = PublicKey::from_bytes(&[&[1][..], &key.publisher().0].concat()).expect("a key");
    let unsigned = component(&[("manifest", b"toad"), ("more", b"1")]);
    public.verify(&mut Cursor::new(sign(&unsigned, &key)), None).expect("wasmsign2 takes what we signed");

    let module = Module::deserialize(&mut Cursor::new(&unsigned)).expect("a component");
    let mut written = Vec::new();
    let with_key = theirs.sign(module.clone(), Some(&key.publisher().0.to_vec())).expect("signed");
    with_key.serialize(&mut written).expect("written");
    assert_eq!(written, sign(&unsigned, &key), "byte for byte");
    // Without the key in it nobody can say who signed it.
    let mut nameless = Vec::new();
    theirs.sign(module, None).expect("signed").serialize(&mut nameless).expect("written");
    assert_eq!(signed(&nameless), Signed::Broken);
}

/// Over several hashes it would hold for what ends at a delimiter as well as for the whole.
#[test]
fn a_signature_over_parts_is_none_over_the_whole() {
    let (key, pkcs8) = SigningKey::generate().expect("random numbers");
    let unsigned = component(&[("manifest", b"toad"), ("signature_delimiter", &[7; 16]), ("more", b"1")]);
    let module = Module::deserialize(&mut Cursor::new(&unsigned)).expect("a component");
    let id = key.publisher().0.to_vec();
    let (in_parts, _) = theirs(&pkcs8).sign_multi(module, Some(&id), false, true).expect("signed");
    let mut written = Vec::new();
    in_parts.serialize(&mut written).expect("written");
    let cut = component(&[("manifest", b"toad"), ("signature_delimiter", &[7; 16])]).len() - 8;
    let (_, rest) = first_section(&written).expect("a signature");
    let cut = [&written[..written.len() - rest.len()], &rest[..cut]].concat();
    let public = PublicKey::from_bytes(&[&[1][..], &key.publisher().0].concat()).expect("a key");
    assert!(public.verify(&mut Cursor::new(&cut), None).is_ok(), "wasmsign2 takes the first half for the whole");
    assert_eq!((signed(&written), signed(&cut)), (Signed::Broken, Signed::Broken));
}

#[test]
fn lengths_that_lie_are_no_signature() {
    let contents = |bytes: &[u8]| component(&[(NAME, bytes)]);
    for bytes in
        [&[][..], &[1, 1, 1], &[1, 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f], &[1, 1, 1, 0x7f, 1, 1], &[2, 1, 1, 0]]
    {
        assert_eq!(signed(&contents(bytes)), Signed::Broken, "{bytes:?}");
    }
}

#[test]
fn keys_are_written_as_they_are_read() {
    let key = key().publisher();
    let text = key.to_string();
    assert_eq!((text.parse(), text.len()), (Ok(key), 51));
    for bad in ["", "ed25519:", &text[8..], &text[..50], &format!("{text}A"), &text.replace("ed", "rs")] {
        assert_eq!(bad.parse::<PublisherKey>(), Err(NoKey), "{bad}");
    }
    assert!(SigningKey::read(b"no key").is_err());
}
