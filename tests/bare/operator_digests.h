#pragma once
// Digests of the results of tests/bare/operators.cc on an x86-64 host. The test prints those that
// differ.

#include <cstdint>

namespace espalier {
inline constexpr std::uint64_t kOperatorDigests[] = {
    0x22119378920e14c1,  // sum i8
    0xc02ae25ff2c19af5,  // product i8
    0x1088c7b77837cca5,  // min i8
    0x9bfb8c6529a29ab5,  // max i8
    0x0dc10e93bec2041d,  // and i8
    0x7483f2b9bf5e8065,  // or i8
    0x2cbdc54949c2f4a1,  // xor i8
    0x22119378920e14c1,  // sum u8
    0xc02ae25ff2c19af5,  // product u8
    0xb6a5aad823098109,  // min u8
    0xd66c1c49fec3bb51,  // max u8
    0x0dc10e93bec2041d,  // and u8
    0x7483f2b9bf5e8065,  // or u8
    0x2cbdc54949c2f4a1,  // xor u8
    0xe2880da58fa3a585,  // sum i16
    0xb4e0b01d5ccc52f9,  // product i16
    0xae03163511e37419,  // min i16
    0xe35bff92ca903f81,  // max i16
    0x424206de9489bcd9,  // and i16
    0xf7f78b77e911bf19,  // or i16
    0x76eed92e13ba773d,  // xor i16
    0xe2880da58fa3a585,  // sum u16
    0xb4e0b01d5ccc52f9,  // product u16
    0xf4157bda851b1e95,  // min u16
    0x328325dfcf938231,  // max u16
    0x424206de9489bcd9,  // and u16
    0xf7f78b77e911bf19,  // or u16
    0x76eed92e13ba773d,  // xor u16
    0xaf444a3db3b6d0d1,  // sum i32
    0x2ba6109f5679ca6d,  // product i32
    0xa9dd35a3d4e49611,  // min i32
    0xc1f58fb5880173a5,  // max i32
    0x5b609c67d6f4d9e9,  // and i32
    0xc320917b923a8181,  // or i32
    0xeab1ece4464e17b9,  // xor i32
    0xaf444a3db3b6d0d1,  // sum u32
    0x2ba6109f5679ca6d,  // product u32
    0xf206912d42e141b1,  // min u32
    0x46c1e6dad9e4a435,  // max u32
    0x5b609c67d6f4d9e9,  // and u32
    0xc320917b923a8181,  // or u32
    0xeab1ece4464e17b9,  // xor u32
    0xa5b3f479a63d7be5,  // sum i64
    0xe6f685f23c52a1e5,  // product i64
    0x5420bf086046d735,  // min i64
    0x100e497fbe80c12d,  // max i64
    0x286c67537668d915,  // and i64
    0xd7cbd60a07945105,  // or i64
    0xf1da658e6228ecd1,  // xor i64
    0xa5b3f479a63d7be5,  // sum u64
    0xe6f685f23c52a1e5,  // product u64
    0x1fbf6630f9fde98d,  // min u64
    0xb79ac9d198cfff89,  // max u64
    0x286c67537668d915,  // and u64
    0xd7cbd60a07945105,  // or u64
    0xf1da658e6228ecd1,  // xor u64
    0xc4cc2dc2d0db1641,  // sum f16
    0xefe94b84c04ee281,  // product f16
    0xe861fd616ed77709,  // min f16
    0xfd68cc0ef163bf8d,  // max f16
    0xe818a6dbc746fcf9,  // sum bf16
    0x5fea791cdafd1899,  // product bf16
    0x8dff6620542d3aa5,  // min bf16
    0x0e893220452f7ed5,  // max bf16
    0x72a9754acc486661,  // sum f32
    0x5514dbfc391308e5,  // product f32
    0x4e4e7457072bf6fd,  // min f32
    0xd8732a6af87fc825,  // max f32
    0x1941383453dff845,  // sum f64
    0x153add6963dfe7a1,  // product f64
    0x72ef5ab9d4277d65,  // min f64
    0x468f4053a866cc4d,  // max f64
    0x9f1b34b128e37645,  // minloc i32loc
    0x8795b23108d2b779,  // maxloc i32loc
    0xcdd8c7bf8c6b4d6d,  // minloc f32loc
    0x91cb615225764729,  // maxloc f32loc
    0x44709992e58b0371,  // minloc i64loc
    0x808e8962c3c2ec6d,  // maxloc i64loc
    0xe9dd945816ec5085,  // minloc f64loc
    0xb8a0298d0ce6c945,  // maxloc f64loc
};
}  // namespace espalier
