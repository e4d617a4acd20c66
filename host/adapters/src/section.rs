//! Finds a custom section in a component by walking section headers, without decoding the contents. Components nest
//! core modules and further components, and the linker keeps an adapter's manifest in the module that it was compiled
//! into.

/// How deep components may be nested. wit-component nests twice.
const DEEPEST: u32 = 8;

const CUSTOM: u8 = 0;
const CORE_MODULE: u8 = 1;
const COMPONENT: u8 = 4;

/// The most sections of one file, nested ones included. A typical component has some dozens, one with an interpreter
/// inside some hundreds.
const MOST_SECTIONS: u32 = 100_000;

/// Why a component is refused before it is compiled. Compile time grows with the square of the nesting depth: a quarter
/// of a megabyte would keep a processor busy for half a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// Too many sections.
    #[error("it has more than {MOST_SECTIONS} sections")]
    Sections,
    /// Components nested too deep.
    #[error("its components are nested more than {DEEPEST} deep")]
    Depth,
}

/// Refuses a component built to waste resources. Damage is reported later, by the compiler.
pub(crate) fn bound(binary: &[u8]) -> Result<(), Excess> {
    count(binary, DEEPEST, &mut 0)
}

fn count(binary: &[u8], depth: u32, sections: &mut u32) -> Result<(), Excess> {
    let is_component = binary.get(6) == Some(&1);
    let mut rest = binary.get(8..).unwrap_or_default();
    while let Some((&kind, after)) = rest.split_first() {
        let Some((contents, after)) = unsigned(after).and_then(|(length, after)| after.split_at_checked(length)) else {
            return Ok(());
        };
        *sections += 1;
        if *sections > MOST_SECTIONS {
            return Err(Excess::Sections);
        }
        if is_component && matches!(kind, CORE_MODULE | COMPONENT) {
            let depth = depth.checked_sub(1).ok_or(Excess::Depth)?;
            count(contents, depth, sections)?;
        }
        rest = after;
    }
    Ok(())
}

/// The contents of the first custom section of this name, wherever it is nested.
pub(crate) fn find<'b>(binary: &'b [u8], name: &str) -> Option<&'b [u8]> {
    search(binary, name, DEEPEST)
}

fn search<'b>(binary: &'b [u8], name: &str, depth: u32) -> Option<&'b [u8]> {
    let header = binary.get(..8)?;
    if !header.starts_with(b"\0asm") || depth == 0 {
        return None;
    }
    // Version 1 of layer 0 is a core module; anything of layer 1 is a component.
    let is_component = header[6] == 1;
    let mut rest = &binary[8..];
    while let Some((&kind, after)) = rest.split_first() {
        let (length, after) = unsigned(after)?;
        let (contents, after) = after.split_at_checked(length)?;
        let found = match kind {
            CUSTOM => {
                let (length, named) = unsigned(contents)?;
                let (title, payload) = named.split_at_checked(length)?;
                (title == name.as_bytes()).then_some(payload)
            }
            CORE_MODULE | COMPONENT if is_component => search(contents, name, depth - 1),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        rest = after;
    }
    None
}

/// A LEB128 number of at most 32 bits, and what follows it.
fn unsigned(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{DEEPEST, Excess, MOST_SECTIONS, bound, find};

    fn section(kind: u8, contents: &[u8]) -> Vec<u8> {
        let length = u8::try_from(contents.len()).expect("short");
        [&[kind, length], contents].concat()
    }

    fn custom(name: &str, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(name.len()).expect("short");
        section(0, &[&[length], name.as_bytes(), payload].concat())
    }

    #[test]
    fn a_section_is_found_however_deep_it_lies() {
        let module = [&b"\0asm\x01\0\0\0"[..], &custom("other", b"no"), &custom("wanted", b"yes")].concat();
        let inner = [&b"\0asm\x0d\0\x01\0"[..], &section(7, b"type"), &section(1, &module)].concat();
        let outer = [&b"\0asm\x0d\0\x01\0"[..], &section(4, &inner)].concat();
        for binary in [&module, &inner, &outer] {
            assert_eq!(find(binary, "wanted"), Some(&b"yes"[..]));
            assert_eq!(find(binary, "absent"), None);
        }
    }

    #[test]
    fn damaged_bytes_hold_nothing() {
        let module = [&b"\0asm\x01\0\0\0"[..], &custom("wanted", b"yes")].concat();
        for length in 0..module.len() {
            assert_eq!(find(&module[..length], "wanted"), None);
        }
        assert_eq!(find(b"\0asm\x01\0\0\0\x00\xff\xff\xff\xff\x0f", "wanted"), None);
    }

    #[test]
    fn what_is_built_to_be_a_burden_is_refused_unread() {
        let head = &b"\0asm\x0d\0\x01\0"[..];
        let nested = |times: u32| {
            let mut inner = head.to_vec();
            for _ in 0..times {
                inner = [head, &section(4, &inner)].concat();
            }
            inner
        };
        assert_eq!(bound(&nested(DEEPEST)), Ok(()));
        assert_eq!(bound(&nested(DEEPEST + 1)), Err(Excess::Depth));
        let many = |times: u32| [head, &section(0, b"\x01x").repeat(times as usize)].concat();
        assert_eq!(bound(&many(MOST_SECTIONS)), Ok(()));
        assert_eq!(bound(&many(MOST_SECTIONS + 1)), Err(Excess::Sections));
        let whole = nested(2);
        for length in 0..whole.len() {
            assert_eq!(bound(&whole[..length]), Ok(()), "damage is another matter");
        }
    }
}
