#pragma once
// Digests of the results of tests/bare/operators.cc on an x86-64 host. The test prints those that
// differ.

#include <cstdint>

namespace espalier {
inline constexpr std::uint64_t kOperatorDigests[] = {
    // i8: sum, product, min, max, and, or, xor
    0x22119378920e14c1, 0xc02ae25ff2c19af5, 0x1088c7b77837cca5, 0x9bfb8c6529a29ab5,
    0x0dc10e93bec2041d, 0x7483f2b9bf5e8065, 0x2cbdc54949c2f4a1,
    // u8: sum, product, min, max, and, or, xor
    0x22119378920e14c1, 0xc02ae25ff2c19af5, 0xb6a5aad823098109, 0xd66c1c49fec3bb51,
    0x0dc10e93bec2041d, 0x7483f2b9bf5e8065, 0x2cbdc54949c2f4a1,
    // i16: sum, product, min, max, and, or, xor
    0xe2880da58fa3a585, 0xb4e0b01d5ccc52f9, 0xae03163511e37419, 0xe35bff92ca903f81,
    0x424206de9489bcd9, 0xf7f78b77e911bf19, 0x76eed92e13ba773d,
    // u16: sum, product, min, max, and, or, xor
    0xe2880da58fa3a585, 0xb4e0b01d5ccc52f9, 0xf4157bda851b1e95, 0x328325dfcf938231,
    0x424206de9489bcd9, 0xf7f78b77e911bf19, 0x76eed92e13ba773d,
    // i32: sum, product, min, max, and, or, xor
    0xaf444a3db3b6d0d1, 0x2ba6109f5679ca6d, 0xa9dd35a3d4e49611, 0xc1f58fb5880173a5,
    0x5b609c67d6f4d9e9, 0xc320917b923a8181, 0xeab1ece4464e17b9,
    // u32: sum, product, min, max, and, or, xor
    0xaf444a3db3b6d0d1, 0x2ba6109f5679ca6d, 0xf206912d42e141b1, 0x46c1e6dad9e4a435,
    0x5b609c67d6f4d9e9, 0xc320917b923a8181, 0xeab1ece4464e17b9,
    // i64: sum, product, min, max, and, or, xor
    0xa5b3f479a63d7be5, 0xe6f685f23c52a1e5, 0x5420bf086046d735, 0x100e497fbe80c12d,
    0x286c67537668d915, 0xd7cbd60a07945105, 0xf1da658e6228ecd1,
    // u64: sum, product, min, max, and, or, xor
    0xa5b3f479a63d7be5, 0xe6f685f23c52a1e5, 0x1fbf6630f9fde98d, 0xb79ac9d198cfff89,
    0x286c67537668d915, 0xd7cbd60a07945105, 0xf1da658e6228ecd1,
    // f16: sum, product, min, max
    0xc4cc2dc2d0db1641, 0xefe94b84c04ee281, 0xe861fd616ed77709, 0xfd68cc0ef163bf8d,
    // bf16: sum, product, min, max
    0xe818a6dbc746fcf9, 0x5fea791cdafd1899, 0x8dff6620542d3aa5, 0x0e893220452f7ed5,
    // f32: sum, product, min, max
    0x72a9754acc486661, 0x5514dbfc391308e5, 0x4e4e7457072bf6fd, 0xd8732a6af87fc825,
    // f64: sum, product, min, max
    0x1941383453dff845, 0x153add6963dfe7a1, 0x72ef5ab9d4277d65, 0x468f4053a866cc4d,
    // i32loc: minloc, maxloc
    0x9f1b34b128e37645, 0x8795b23108d2b779,
    // f32loc: minloc, maxloc
    0xcdd8c7bf8c6b4d6d, 0x91cb615225764729,
    // i64loc: minloc, maxloc
    0x44709992e58b0371, 0x808e8962c3c2ec6d,
    // f64loc: minloc, maxloc
    0xe9dd945816ec5085, 0xb8a0298d0ce6c945};
}  // namespace espalier
