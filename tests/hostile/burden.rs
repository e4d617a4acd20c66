//! A component that is a burden to compile: one function in which each of many variables changes in each of many nested
//! loops, so that the compiler has to follow every variable through every loop. With a thousand of each it is 16 KB, and
//! takes seconds and more than a gigabyte; with five thousand it is 80 KB and takes as much as there is.

/// The component, with so many loops and variables.
pub(crate) fn component(loops: usize, variables: usize) -> Vec<u8> {
    let loop_of_nothing = [0x03, 0x40];
    let next = |variable: usize| {
        // local.get, i32.const 1, i32.add, local.set
        [&[0x20][..], &number(variable), &[0x41, 0x01, 0x6a, 0x21], &number(variable)].concat()
    };
    // local.get 0, br_if 0, end
    let again = [0x20, 0x00, 0x0d, 0x00, 0x0b];
    let body = [
        // One group of locals, of i32.
        [&number(1)[..], &number(variables), &[0x7f]].concat(),
        loop_of_nothing.repeat(loops),
        (0..variables).flat_map(next).collect(),
        again.repeat(loops),
        vec![0x0b],
    ]
    .concat();
    let code = [number(1), number(body.len()), body].concat();
    let module = [
        &b"\0asm\x01\0\0\0"[..],
        &section(1, &[0x01, 0x60, 0x00, 0x00]),
        &section(3, &[0x01, 0x00]),
        &section(10, &code),
    ]
    .concat();
    [&b"\0asm\x0d\0\x01\0"[..], &section(1, &module), &section(2, &[0x01, 0x00, 0x00, 0x00])].concat()
}

fn section(kind: u8, contents: &[u8]) -> Vec<u8> {
    [&[kind][..], &number(contents.len()), contents].concat()
}

/// A number as LEB128.
fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        bytes.push(if value == 0 { low } else { low | 0x80 });
        if value == 0 {
            return bytes;
        }
    }
}
