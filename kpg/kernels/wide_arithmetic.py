"""Sums, products and quotients of 128-bit integers, each two lanes: the upper 64 bits, and the lower ones minus 2**63.

    add_wide        out  =  a + b, or a - b                         where |out| <= limit; else the row is marked 1
    multiply_wide   out  =  a × b                                   where |out| <= limit; else the row is marked 1
    divide_wide     out  =  a × up / (b × down), rounded half away from zero      likewise, and 2 where b is 0

A block with a single column stands for any number of equal columns. Numbers are split into *limbs* of 32 bits, the
least significant first, as uint64: a product of two limbs plus two carries fits 64 bits. `up` and `down` are limbs of
any count. Division is Knuth's algorithm D. Preconditions: |a| and |b| are below 2**127, `up` and `down` are positive.
Numbers of up to 64 bits are multiplied without limbs.
Cost: a few nanoseconds a row for sums and small products, tens of nanoseconds for others.
Twins: kpg.testing.kernel_twins.wide_arithmetic_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit

LIMB_BITS = np.uint64(32)
LIMB_MASK = np.uint64(0xFFFFFFFF)
SIGN_BIT = np.uint64(1 << 63)
MIN = np.int64(-(1 << 63))
ZERO = np.uint64(0)
ONE = np.uint64(1)
WIDE_LIMBS = 4  # limbs of a 128-bit integer
OVERFLOW = 1  # the mark of a row whose result exceeds the limit
ZERO_DIVISOR = 2  # the mark of a row whose divisor is zero


@inlined
def load_limbs(block, column, limbs):
    """Write the limbs of the magnitude of one number, and return whether it is negative."""
    high = np.uint64(block[0, column])
    low = np.uint64(block[1, column]) ^ SIGN_BIT
    negative = block[0, column] < 0
    if negative:
        low = ~low + ONE
        high = ~high + (ONE if low == ZERO else ZERO)
    limbs[0] = low & LIMB_MASK
    limbs[1] = low >> LIMB_BITS
    limbs[2] = high & LIMB_MASK
    limbs[3] = high >> LIMB_BITS
    return negative


@inlined
def store_limbs(limbs, negative, out, column):
    """Write the number with a magnitude and a sign; the magnitude has four limbs and is below 2**127."""
    low = limbs[0] | (limbs[1] << LIMB_BITS)
    high = limbs[2] | (limbs[3] << LIMB_BITS)
    if negative:
        low = ~low + ONE
        high = ~high + (ONE if low == ZERO else ZERO)
    out[0, column] = np.int64(high)
    out[1, column] = np.int64(low ^ SIGN_BIT)


@inlined
def multiply_limbs(a, b, product):
    """Write the product of two numbers; it has as many limbs as both together."""
    for i in range(a.shape[0] + b.shape[0]):
        product[i] = ZERO
    for i in range(a.shape[0]):
        if a[i] != ZERO:
            carry = ZERO
            for j in range(b.shape[0]):
                total = a[i] * b[j] + product[i + j] + carry
                product[i + j] = total & LIMB_MASK
                carry = total >> LIMB_BITS
            product[i + b.shape[0]] = carry


@inlined
def exceeds(limbs, count, limit):
    """Return whether a number of `count` limbs exceeds a number of four."""
    for i in range(WIDE_LIMBS, count):
        if limbs[i] != ZERO:
            return True
    for i in range(WIDE_LIMBS - 1, -1, -1):
        if limbs[i] != limit[i]:
            return limbs[i] > limit[i]
    return False


@inlined
def used_limbs(limbs):
    """Return the number of limbs up to the most significant one that is not zero."""
    count = limbs.shape[0]
    while count > 0 and limbs[count - 1] == ZERO:
        count -= 1
    return count


@inlined
def divide_by_limb(top, count, divisor, quotient):
    """Divide a number of `count` limbs by one limb, and return the remainder."""
    rest = ZERO
    for i in range(count - 1, -1, -1):
        rest = (rest << LIMB_BITS) | top[i]
        quotient[i] = rest // divisor
        rest = rest % divisor
    return rest


@inlined
def shift_left(limbs, count, bits):
    """Shift a number by fewer than 32 bits, in place; return the bits that leave it."""
    carry = ZERO
    for i in range(count):
        total = (limbs[i] << bits) | carry
        limbs[i] = total & LIMB_MASK
        carry = total >> LIMB_BITS
    return carry


@inlined
def estimate_digit(top, at, first, second, third):
    """Return an estimate of one limb of a quotient: exact, or one too large."""
    above = (top[at] << LIMB_BITS) | top[at - 1]
    digit = above // first
    rest = above % first
    while digit > LIMB_MASK or digit * second > ((rest << LIMB_BITS) | third):
        digit -= ONE
        rest += first
        if rest > LIMB_MASK:
            break
    return digit


@inlined
def subtract_multiple(top, at, divisor, count, digit):
    """Subtract a multiple of the divisor at a position, in place; return whether the result is negative."""
    carry = ZERO
    borrow = ZERO
    for i in range(count):
        product = digit * divisor[i] + carry
        carry = product >> LIMB_BITS
        taken = (product & LIMB_MASK) + borrow
        borrow = ONE if top[at + i] < taken else ZERO
        top[at + i] = (top[at + i] + (borrow << LIMB_BITS)) - taken
    taken = carry + borrow
    negative = top[at + count] < taken
    top[at + count] = (top[at + count] - taken) & LIMB_MASK
    return negative


@inlined
def add_back(top, at, divisor, count):
    """Add the divisor at a position, in place; the carry out cancels the borrow before."""
    carry = ZERO
    for i in range(count):
        total = top[at + i] + divisor[i] + carry
        top[at + i] = total & LIMB_MASK
        carry = total >> LIMB_BITS
    top[at + count] = (top[at + count] + carry) & LIMB_MASK


@inlined
def is_half_or_more(rest, divisor, count):
    """Return whether twice the remainder is at least the divisor."""
    if rest[count - 1] >> np.uint64(31):
        return True
    for i in range(count - 1, -1, -1):
        doubled = (rest[i] << ONE) & LIMB_MASK
        if i > 0:
            doubled |= rest[i - 1] >> np.uint64(31)
        if doubled != divisor[i]:
            return doubled > divisor[i]
    return True


@inlined
def divide_limbs(top, top_count, divisor, count, quotient):
    """Divide, and return whether twice the remainder is at least the divisor. `top` has a spare limb."""
    if count == 1:
        rest = divide_by_limb(top, top_count, divisor[0], quotient)
        return rest >= divisor[0] - rest
    bits = ZERO
    while (divisor[count - 1] << bits) < (ONE << np.uint64(31)):
        bits += ONE
    shift_left(divisor, count, bits)
    top[top_count] = shift_left(top, top_count, bits)
    first = divisor[count - 1]
    second = divisor[count - 2]
    for at in range(top_count - count, -1, -1):
        digit = estimate_digit(top, at + count, first, second, top[at + count - 2])
        if subtract_multiple(top, at, divisor, count, digit):
            digit -= ONE
            add_back(top, at, divisor, count)
        quotient[at] = digit
    return is_half_or_more(top, divisor, count)


@inlined
def add_one(limbs):
    """Add one to a number, in place; its most significant limb has room."""
    for i in range(limbs.shape[0]):
        limbs[i] = (limbs[i] + ONE) & LIMB_MASK
        if limbs[i] != ZERO:
            return


@inlined
def magnitude_of(number):
    """Return the magnitude of a number of 64 bits."""
    return ~np.uint64(number) + ONE if number < 0 else np.uint64(number)


@inlined
def multiply_words(a, b):
    """Return the product of two magnitudes of 64 bits: its lower and its upper 64 bits."""
    a_low = a & LIMB_MASK
    a_high = a >> LIMB_BITS
    b_low = b & LIMB_MASK
    b_high = b >> LIMB_BITS
    lowest = a_low * b_low
    first = a_low * b_high
    second = a_high * b_low
    middle = (lowest >> LIMB_BITS) + (first & LIMB_MASK) + (second & LIMB_MASK)
    upper = a_high * b_high + (first >> LIMB_BITS) + (second >> LIMB_BITS) + (middle >> LIMB_BITS)
    return (lowest & LIMB_MASK) | (middle << LIMB_BITS), upper


@jit
def add_wide(a, b, sign, bounds, out, marks):
    """Write a + b (`sign` is 1) or a - b (`sign` is -1), and mark the rows outside of the bounds; return if any is.

    The columns of `bounds` are the least and the greatest result that is not marked.
    """
    a_step = 0 if a.shape[1] == 1 else 1
    b_step = 0 if b.shape[1] == 1 else 1
    failed = 0
    for i in range(out.shape[1]):
        a_high = a[0, i * a_step]
        b_high = b[0, i * b_step]
        a_low = np.uint64(a[1, i * a_step]) ^ SIGN_BIT
        b_low = np.uint64(b[1, i * b_step]) ^ SIGN_BIT
        if sign < 0:
            b_low = ~b_low + ONE
            b_high = ~b_high + (1 if b_low == ZERO else 0)
        sum_low = a_low + b_low
        high = a_high + b_high + (1 if sum_low < a_low else 0)
        low = np.int64(sum_low ^ SIGN_BIT)
        is_wrapped = ((a_high ^ high) & (b_high ^ high)) < 0
        is_above = high > bounds[0, 1] or (high == bounds[0, 1] and low > bounds[1, 1])
        is_below = high < bounds[0, 0] or (high == bounds[0, 0] and low < bounds[1, 0])
        out[0, i] = high
        out[1, i] = low
        mark = OVERFLOW if is_wrapped or is_above or is_below else 0
        marks[i] = mark
        failed |= mark
    return failed


@jit
def multiply_wide(a, b, limit, out, marks):
    """Write the product of each pair of numbers, and mark those that exceed the limit in magnitude; return if any does.

    A product of two numbers of one lane is computed from words, any other product from limbs.
    """
    a_limbs = np.empty(WIDE_LIMBS, np.uint64)
    b_limbs = np.empty(WIDE_LIMBS, np.uint64)
    limit_limbs = np.empty(WIDE_LIMBS, np.uint64)
    product = np.empty(2 * WIDE_LIMBS, np.uint64)
    load_limbs(limit, 0, limit_limbs)
    limit_high = np.uint64(limit[0, 0])
    limit_low = np.uint64(limit[1, 0]) ^ SIGN_BIT
    a_step = 0 if a.shape[1] == 1 else 1
    b_step = 0 if b.shape[1] == 1 else 1
    failed = 0
    for i in range(out.shape[1]):
        a_word = a[1, i * a_step] ^ MIN
        b_word = b[1, i * b_step] ^ MIN
        if a[0, i * a_step] == a_word >> 63 and b[0, i * b_step] == b_word >> 63:
            low, high = multiply_words(magnitude_of(a_word), magnitude_of(b_word))
            exceeded = high > limit_high or (high == limit_high and low > limit_low)
            if (a_word < 0) != (b_word < 0):
                low = ~low + ONE
                high = ~high + (ONE if low == ZERO else ZERO)
            out[0, i] = np.int64(high)
            out[1, i] = np.int64(low ^ SIGN_BIT)
        else:
            a_negative = load_limbs(a, i * a_step, a_limbs)
            b_negative = load_limbs(b, i * b_step, b_limbs)
            multiply_limbs(a_limbs, b_limbs, product)
            exceeded = exceeds(product, 2 * WIDE_LIMBS, limit_limbs)
            if exceeded:
                out[0, i] = 0
                out[1, i] = 0
            else:
                store_limbs(product, a_negative != b_negative, out, i)
        mark = OVERFLOW if exceeded else 0
        marks[i] = mark
        failed |= mark
    return failed


@jit
def divide_wide(a, b, up, down, limit, out, marks):
    """Write the rounded quotient of each pair of numbers; mark zero divisors and quotients beyond the limit."""
    limbs = np.empty(WIDE_LIMBS, np.uint64)
    limit_limbs = np.empty(WIDE_LIMBS, np.uint64)
    up_limbs = up.astype(np.uint64)
    down_limbs = down.astype(np.uint64)
    top = np.zeros(WIDE_LIMBS + max(up.shape[0], down.shape[0]) + 1, np.uint64)  # as long as the divisor, and a spare
    divisor = np.empty(WIDE_LIMBS + down.shape[0], np.uint64)
    quotient = np.empty(top.shape[0] + 1, np.uint64)
    load_limbs(limit, 0, limit_limbs)
    a_step = 0 if a.shape[1] == 1 else 1
    b_step = 0 if b.shape[1] == 1 else 1
    for i in range(out.shape[1]):
        a_negative = load_limbs(a, i * a_step, limbs)
        multiply_limbs(limbs, up_limbs, top)
        for j in range(WIDE_LIMBS + up.shape[0], top.shape[0]):
            top[j] = ZERO
        b_negative = load_limbs(b, i * b_step, limbs)
        multiply_limbs(limbs, down_limbs, divisor)
        out[0, i] = 0
        out[1, i] = 0
        marks[i] = 0
        count = used_limbs(divisor)
        if count == 0:
            marks[i] = ZERO_DIVISOR
            continue
        for j in range(quotient.shape[0]):
            quotient[j] = ZERO
        if divide_limbs(top, max(used_limbs(top), count), divisor, count, quotient):
            add_one(quotient)
        if exceeds(quotient, quotient.shape[0], limit_limbs):
            marks[i] = OVERFLOW
        else:
            store_limbs(quotient, a_negative != b_negative, out, i)


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield add_wide, (TABLE, TABLE, NUMBER, TABLE, TABLE, COLUMN)
    yield multiply_wide, (TABLE, TABLE, TABLE, TABLE, COLUMN)
    yield divide_wide, (TABLE, TABLE, COLUMN, COLUMN, TABLE, TABLE, COLUMN)
