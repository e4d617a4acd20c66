//! Finds a custom section in a component by walking section headers, without decoding the contents. Components nest
//! core modules and further components, and the linker keeps an adapter's manifest in the module that it was compiled
//! into.

/// How deep components may be nested. wit-component nests twice.
const DEEPEST: u32 = 8;

const CUSTOM: u8 = 0;
const CORE_MODULE: u8 = 1;
const COMPONENT: u8 = 4;
/// The highest number of a section, in modules and components.
const LAST_KIND: u8 = 13;
/// The section of a core module with the bodies of its functions.
const CODE: u8 = 10;

/// The most sections of one file, nested ones included. A typical component has some dozens, one with an interpreter
/// inside some hundreds.
const MOST_SECTIONS: u32 = 100_000;

/// The most functions of one file. One with an interpreter has some ten thousand.
const MOST_FUNCTIONS: u64 = 100_000;

/// The longest function, in bytes. The loop of an interpreter has some hundred thousand.
const LONGEST_FUNCTION: usize = 1 << 20;

/// Why a component is refused before it is compiled. Compile time grows with the square of the nesting depth, and faster
/// than the length of a function: a quarter of a megabyte would keep a processor busy for half a minute. What passes
/// here and is still a burden ends at the limits of the process that compiles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// Too many sections.
    #[error("it has more than {MOST_SECTIONS} sections")]
    Sections,
    /// Components nested too deep.
    #[error("its components are nested more than {DEEPEST} deep")]
    Depth,
    /// Too many functions.
    #[error("it has more than {MOST_FUNCTIONS} functions")]
    Functions,
    /// A function that is too long.
    #[error("it has a function of more than {LONGEST_FUNCTION} bytes")]
    LongFunction,
}

/// What was counted so far.
#[derive(Default)]
struct Counted {
    sections: u32,
    functions: u64,
}

/// Refuses a component built to waste resources. Damage is reported later, by the compiler.
pub(crate) fn bound(binary: &[u8]) -> Result<(), Excess> {
    count(binary, DEEPEST, &mut Counted::default())
}

fn count(binary: &[u8], depth: u32, counted: &mut Counted) -> Result<(), Excess> {
    let is_component = binary.get(6) == Some(&1);
    let mut rest = binary.get(8..).unwrap_or_default();
    while let Some((&kind, after)) = rest.split_first() {
        let Some((contents, after)) = unsigned(after).and_then(|(length, after)| after.split_at_checked(length)) else {
            return Ok(());
        };
        counted.sections += 1;
        if counted.sections > MOST_SECTIONS {
            return Err(Excess::Sections);
        }
        if is_component && matches!(kind, CORE_MODULE | COMPONENT) {
            let depth = depth.checked_sub(1).ok_or(Excess::Depth)?;
            count(contents, depth, counted)?;
        } else if !is_component && kind == CODE {
            count_functions(contents, counted)?;
        }
        rest = after;
    }
    Ok(())
}

/// The bodies of functions: their number, and before each its length.
fn count_functions(code: &[u8], counted: &mut Counted) -> Result<(), Excess> {
    let Some((number, mut rest)) = unsigned(code) else { return Ok(()) };
    counted.functions += number as u64;
    if counted.functions > MOST_FUNCTIONS {
        return Err(Excess::Functions);
    }
    while let Some((length, after)) = unsigned(rest) {
        if length > LONGEST_FUNCTION {
            return Err(Excess::LongFunction);
        }
        let Some((_, after)) = after.split_at_checked(length) else { return Ok(()) };
        rest = after;
    }
    Ok(())
}

/// Whether the file ends within a section: it was not copied or downloaded to its end.
pub(crate) fn is_cut_short(binary: &[u8]) -> bool {
    let mut rest = binary.get(8..).unwrap_or_default();
    while let Some((&kind, after)) = rest.split_first() {
        if kind > LAST_KIND {
            return false;
        }
        match unsigned(after).and_then(|(length, after)| after.split_at_checked(length)) {
            Some((_, after)) => rest = after,
            None => return true,
        }
    }
    binary.len() < 8
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

/// The names of the custom sections of a file itself, nested ones left out.
pub(crate) fn top_level(binary: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = binary.get(8..).unwrap_or_default();
    let sections = std::iter::from_fn(move || {
        let (&kind, after) = rest.split_first()?;
        let (contents, after) = unsigned(after).and_then(|(length, after)| after.split_at_checked(length))?;
        rest = after;
        Some((kind, contents))
    });
    sections.filter(|(kind, _)| *kind == CUSTOM).filter_map(|(_, contents)| {
        let (length, named) = unsigned(contents)?;
        named.get(..length)
    })
}

/// A custom section as it is written.
pub(crate) fn custom(name: &str, payload: &[u8]) -> Vec<u8> {
    let mut contents = Vec::new();
    put_bytes(&mut contents, name.as_bytes());
    contents.extend(payload);
    let mut section = vec![CUSTOM];
    put_bytes(&mut section, &contents);
    section
}

/// Writes bytes behind their number.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_unsigned(to, bytes.len());
    to.extend(bytes);
}

/// Writes a number as LEB128.
pub(crate) fn put_unsigned(to: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        to.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return;
        }
    }
}

/// A LEB128 number of at most 32 bits, and what follows it.
pub(crate) fn unsigned(bytes: &[u8]) -> Option<(usize, &[u8])> {
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
    use super::{DEEPEST, Excess, LONGEST_FUNCTION, MOST_FUNCTIONS, MOST_SECTIONS, bound, find, is_cut_short};

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
    fn a_file_that_ends_within_a_section_is_cut_short() {
        let module = [&b"\0asm\x01\0\0\0"[..], &custom("wanted", b"yes")].concat();
        for length in 0..=module.len() {
            assert_eq!(is_cut_short(&module[..length]), ![8, module.len()].contains(&length), "{length}");
        }
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

    fn number(value: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        super::put_unsigned(&mut bytes, value);
        bytes
    }

    #[test]
    fn functions_are_counted_and_measured_wherever_they_are_nested() {
        let part = |kind: u8, contents: &[u8]| [&[kind][..], &number(contents.len()), contents].concat();
        let module = |functions: &[usize]| {
            let bodies: Vec<u8> = functions.iter().flat_map(|length| part_of(*length)).collect();
            let code = [number(functions.len()), bodies].concat();
            [&b"\0asm\x01\0\0\0"[..], &part(10, &code)].concat()
        };
        fn part_of(length: usize) -> Vec<u8> {
            [number(length), vec![0; length]].concat()
        }
        let within = |modules: &[Vec<u8>]| {
            let modules: Vec<u8> = modules.iter().flat_map(|module| part(1, module)).collect();
            let inner = [&b"\0asm\x0d\0\x01\0"[..], &modules].concat();
            [&b"\0asm\x0d\0\x01\0"[..], &part(4, &inner)].concat()
        };
        assert_eq!(bound(&within(&[module(&[LONGEST_FUNCTION])])), Ok(()));
        assert_eq!(bound(&within(&[module(&[2, LONGEST_FUNCTION + 1])])), Err(Excess::LongFunction));
        let half = vec![2; MOST_FUNCTIONS as usize / 2];
        assert_eq!(bound(&within(&[module(&half), module(&half)])), Ok(()));
        assert_eq!(bound(&within(&[module(&half), module(&half), module(&[2])])), Err(Excess::Functions));
    }
}
