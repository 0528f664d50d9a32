// Numbers and codes in registers. Every kernel begins with this.
//
// Defined before: FLOAT_BITS (16 or 32) and IS_BFLOAT16 of the floats; CODE_BITS of a code;
// FLOAT8, "e4m3" or "e5m2", if codes are floats, else they are signed integers.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

#define THREADS 256
#define WIDTH 8  // floats that are read or written at once
#define FLOAT_BYTES (FLOAT_BITS / 8)

__device__ __forceinline__ float of_half(u32 bits) {
#if IS_BFLOAT16
    return __uint_as_float(bits << 16);
#else
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"((u16)bits));
    return result;
#endif
}

// Two floats rounded to 16 bits, the first one in the lower half.
__device__ __forceinline__ u32 halves(float first, float second) {
    u16 low, high;
#if IS_BFLOAT16
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(low) : "f"(first));
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(high) : "f"(second));
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(low) : "f"(first));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(high) : "f"(second));
#endif
    return low | ((u32)high << 16);
}

// WIDTH floats as they lie in memory.
struct Vector {
    uint4 parts[FLOAT_BITS / 16];
};

__device__ __forceinline__ Vector load(const u8* x) {
    Vector result;
    #pragma unroll
    for (int i = 0; i < FLOAT_BITS / 16; i++) result.parts[i] = ((const uint4*)x)[i];
    return result;
}

__device__ __forceinline__ void convert(const Vector& x, float* numbers) {
    #pragma unroll
    for (int i = 0; i < FLOAT_BITS / 16; i++) {
        const u32 words[4] = {x.parts[i].x, x.parts[i].y, x.parts[i].z, x.parts[i].w};
        #pragma unroll
        for (int j = 0; j < 4; j++) {
#if FLOAT_BITS == 16
            numbers[2 * j] = of_half(words[j] & 0xffffu);
            numbers[2 * j + 1] = of_half(words[j] >> 16);
#else
            numbers[4 * i + j] = __uint_as_float(words[j]);
#endif
        }
    }
}

__device__ __forceinline__ void store(u8* x, const float* numbers) {
#if FLOAT_BITS == 16
    uint4 words;
    words.x = halves(numbers[0], numbers[1]);
    words.y = halves(numbers[2], numbers[3]);
    words.z = halves(numbers[4], numbers[5]);
    words.w = halves(numbers[6], numbers[7]);
    *(uint4*)x = words;
#else
    *(float4*)x = make_float4(numbers[0], numbers[1], numbers[2], numbers[3]);
    *(float4*)(x + 16) = make_float4(numbers[4], numbers[5], numbers[6], numbers[7]);
#endif
}

__device__ __forceinline__ float load_one(const u8* x, size_t index) {
#if FLOAT_BITS == 16
    return of_half(((const u16*)x)[index]);
#else
    return ((const float*)x)[index];
#endif
}

__device__ __forceinline__ void store_one(u8* x, size_t index, float number) {
#if FLOAT_BITS == 16
    ((u16*)x)[index] = (u16)halves(number, 0.0f);
#else
    ((float*)x)[index] = number;
#endif
}

// The numbers of the first codes of a word, WIDTH at most: the first code is in its lowest bits.
__device__ __forceinline__ void decode_word(u32 word, float* numbers) {
#ifdef FLOAT8
    #pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 pair;
        asm("cvt.rn.f16x2." FLOAT8 "x2 %0, %1;" : "=r"(pair) : "h"((u16)(word >> (16 * i))));
        asm("cvt.f32.f16 %0, %1;" : "=f"(numbers[2 * i]) : "h"((u16)(pair & 0xffffu)));
        asm("cvt.f32.f16 %0, %1;" : "=f"(numbers[2 * i + 1]) : "h"((u16)(pair >> 16)));
    }
#else
    // A code with its highest bit inverted is the code plus HALF; as the lowest bits of 2**23 that
    // is a float, so a subtraction converts it, four times as fast as the instruction for it.
    const u32 HALF = 1u << (CODE_BITS - 1);
    const u32 EXPONENT = 0x4b000000u;
#if CODE_BITS == 8
    word ^= 0x80808080u;
    #pragma unroll
    for (int i = 0; i < 4; i++)
        numbers[i] = __uint_as_float(__byte_perm(word, EXPONENT, 0x7440 + i)) - (8388608.0f + HALF);
#else
    const u32 MASK = (1u << CODE_BITS) - 1;
    #pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const u32 bits = ((word >> (CODE_BITS * i)) & MASK) ^ (HALF | EXPONENT);
        numbers[i] = __uint_as_float(bits) - (8388608.0f + HALF);
    }
#endif
#endif
}

// The numbers of WIDTH codes, those at WIDTH * index of some words.
__device__ __forceinline__ void decode(const u32* words, int index, float* numbers) {
#if CODE_BITS == 8
    decode_word(words[2 * index], numbers);
    decode_word(words[2 * index + 1], numbers + 4);
#elif CODE_BITS == 4
    decode_word(words[index], numbers);
#else
    decode_word(words[index / 2] >> (16 * (index % 2)), numbers);
#endif
}
