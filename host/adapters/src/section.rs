//! Finding a custom section in a component: by walking section headers, never by decoding what is
//! in them. Components nest core modules and further components, and the linker keeps an adapter's
//! manifest in the module that it was compiled into.

/// How deep components are searched. wit-component nests twice.
const DEEPEST: u32 = 8;

const CUSTOM: u8 = 0;
const CORE_MODULE: u8 = 1;
const COMPONENT: u8 = 4;

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
    use super::find;

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
}
