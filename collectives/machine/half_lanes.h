#pragma once
// Sums and products of 8 f16 at once, where the processor converts f16 to f32 and back. Its
// conversions round to nearest even and keep subnormals, as those of half.h do. They keep the upper
// bits of a NaN, so NaNs become canonical before.

#include <cstddef>
#include <cstdint>

#include "collectives/machine/half.h"
#include "espalier/collectives/machine/operators.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace espalier {

inline constexpr std::size_t kF16Lanes = 8;

#if defined(__x86_64__)

template <Op kOp>
[[gnu::target("avx2,f16c")]] inline void combine_f16_lanes(F16* into, const F16* a, const F16* b) {
  const __m256 x = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a)));
  const __m256 y = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
  const __m256 result = kOp == Op::kSum ? _mm256_add_ps(x, y) : _mm256_mul_ps(x, y);
  const __m256 is_nan = _mm256_cmp_ps(result, result, _CMP_UNORD_Q);
  const __m256 nan = _mm256_set1_ps(std::bit_cast<float>(kNanF32));
  const __m128i halves =
      _mm256_cvtps_ph(_mm256_blendv_ps(result, nan, is_nan), _MM_FROUND_TO_NEAREST_INT);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(into), halves);
}

#elif defined(__aarch64__)

template <Op kOp>
inline float16x4_t combine_f16_quad(float16x4_t a, float16x4_t b) {
  const float32x4_t x = vcvt_f32_f16(a);
  const float32x4_t y = vcvt_f32_f16(b);
  const float32x4_t result = kOp == Op::kSum ? vaddq_f32(x, y) : vmulq_f32(x, y);
  const float32x4_t nan = vdupq_n_f32(std::bit_cast<float>(kNanF32));
  return vcvt_f16_f32(vbslq_f32(vceqq_f32(result, result), result, nan));
}

template <Op kOp>
inline void combine_f16_lanes(F16* into, const F16* a, const F16* b) {
  const auto load = [](const F16* halves) {
    return vreinterpretq_f16_u16(vld1q_u16(reinterpret_cast<const std::uint16_t*>(halves)));
  };
  const float16x8_t x = load(a);
  const float16x8_t y = load(b);
  const float16x8_t result =
      vcombine_f16(combine_f16_quad<kOp>(vget_low_f16(x), vget_low_f16(y)),
                   combine_f16_quad<kOp>(vget_high_f16(x), vget_high_f16(y)));
  vst1q_u16(reinterpret_cast<std::uint16_t*>(into), vreinterpretq_u16_f16(result));
}

#endif

}  // namespace espalier
