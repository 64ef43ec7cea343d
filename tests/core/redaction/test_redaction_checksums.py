"""Check digits: published examples pass, and every single wrong digit is caught where the method promises it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum.br import cpf

from comity.core.redaction.checksums import (
    IBAN_CHARS,
    is_base58check,
    is_bech32,
    is_cpf,
    is_iban,
    is_luhn,
    is_nhs_number,
    is_routing_number,
)

REGISTRY_EXAMPLES = re.findall(
    r"\w+",
    """
AD1200012030200359100100 AE070331234567890123456 AL47212110090000000235698741 AT611904300234573201
AZ21NABZ00000000137010001944 BA391290079401028494 BE68539007547034 BG80BNBG96611020345678 BH67BMAG00001299123456
BR1800360305000010009795493C1 BY13NBRB3600900000002Z00AB00 CH9300762011623852957 CR05015202001026284066
CY17002001280000001200527600 CZ6508000000192000145399 DE89370400440532013000 DK5000400440116243
DO28BAGR00000001212453611324 EE382200221020145685 EG380019000500000000263180002 ES9121000418450200051332 FI2112345600000785
FO6264600001631634 FR1420041010050500013M02606 GB29NWBK60161331926819 GE29NB0000000101904917 GI75NWBK000000007099453
GL8964710001000206 GR1601101250000000012300695 GT82TRAJ01020000001210029690 HR1210010051863000160
HU42117730161111101800000000 IE29AIBK93115212345678 IL620108000000099999999 IQ98NBIQ850123456789012
IS140159260076545510730339 IT60X0542811101000000123456 JO94CBJO0010000000000131000302 KW81CBKU0000000000001234560101
KZ86125KZT5004100100 LB62099900000001001901229114 LC55HEMM000100010012001200023015 LI21088100002324013AA
LT121000011101001000 LU280019400644750000 LV80BANK0000435195001 LY83002048000020100120361 MC5811222000010123456789030
MD24AG000225100013104168 ME25505000012345678951 MK07250120000058984 MR1300020001010000123456753
MT84MALT011000012345MTLCAST001S MU17BOMM0101101030300200000MUR NL91ABNA0417164300 NO9386011117947
PK36SCBL0000001123456702 PL61109010140000071219812874 PS92PALS000000000400123456702 PT50000201231234567890154
QA58DOHB00001234567890ABCDEFG RO49AAAA1B31007593840000 RS35260005601001611379 SA0380000000608010167519
SC18SSCB11010000000000001497USD SD2129010501234001 SE4550000000058398257466 SI56263300012039086 SK3112000000198742637541
SM86U0322509800000000270100 ST23000100010051845310146 SV62CENR00000000000000700025 TL380080012345678910157
TN5910006035183598478831 TR330006100519786457841326 UA213223130000026007233566001 VA59001123000012345678
VG96VPVG0000012345678901 XK051212012345678906
""",
)


def test_every_country_of_the_table_has_its_registry_example_accepted():
    assert {iban[:2] for iban in REGISTRY_EXAMPLES} == IBAN_CHARS.keys()
    assert [iban for iban in REGISTRY_EXAMPLES if not is_iban(iban)] == []


@given(st.sampled_from(REGISTRY_EXAMPLES), st.data())
def test_an_iban_with_one_digit_changed_is_refused(iban, data):
    place = data.draw(st.sampled_from([index for index, char in enumerate(iban) if char.isdigit()]))
    digit = data.draw(st.sampled_from([digit for digit in "0123456789" if digit != iban[place]]))
    assert not is_iban(iban[:place] + digit + iban[place + 1 :])


@pytest.mark.parametrize("iban", ["GB29NWBK6016133192681", "ZZ29NWBK60161331926819", "GB29NWBKX0161331926819", "GB"])
def test_an_iban_of_the_wrong_length_country_or_structure_is_refused(iban):
    assert not is_iban(iban)


@given(st.from_regex(r"[0-9]{8,18}", fullmatch=True))
def test_exactly_one_check_digit_satisfies_luhn(digits):
    assert [is_luhn(digits + last) for last in "0123456789"].count(True) == 1


def test_the_well_known_sin_that_begins_with_zero_satisfies_luhn():
    assert is_luhn("046454286")


@pytest.mark.parametrize("number", ["9434765919", "4010232137"])
def test_published_nhs_numbers_pass_and_their_neighbours_fail(number):
    assert is_nhs_number(number)
    assert not is_nhs_number(number[:-1] + str((int(number[-1]) + 1) % 10))
    assert not is_nhs_number(number[1:])


@pytest.mark.parametrize("number", ["021000021", "011401533", "121000248", "026009593"])
def test_routing_numbers_of_known_banks_pass_and_transposed_ones_fail(number):
    assert is_routing_number(number)
    assert not is_routing_number(number[:-1] + str((int(number[-1]) + 1) % 10))


@pytest.mark.parametrize("number", ["000000000", "501000021", "990000027"])
def test_a_routing_number_of_no_federal_reserve_district_is_refused(number):
    assert not is_routing_number(number)


@given(st.from_regex(r"[0-9]{3}[. ]?[0-9]{3}[. ]?[0-9]{3}", fullmatch=True))
def test_a_cpf_has_the_two_check_digits_that_python_stdnum_gives_it(begin):
    valid = [last for last in range(100) if is_cpf(f"{begin}-{last:02d}")]
    assert valid == [last for last in range(100) if cpf.is_valid(f"{begin}-{last:02d}")]


@pytest.mark.parametrize("number", ["", "0" * 11, "52998224725" * 2, "5299822472", "529.982.247-2x", "٥٢٩٩٨٢٢٤٧٢٥"])
def test_what_is_not_eleven_digits_is_no_cpf(number):
    assert not is_cpf(number)


BASE58 = ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"]
BECH32 = [
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
    "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
]


@given(st.sampled_from(BASE58), st.data())
def test_a_base58_address_passes_and_any_one_wrong_letter_fails(address, data):
    assert is_base58check(address)
    place = data.draw(st.integers(1, len(address) - 1))
    letter = data.draw(st.sampled_from([char for char in "23456789ABCDEFGHabcdefgh" if char != address[place]]))
    assert not is_base58check(address[:place] + letter + address[place + 1 :])


@given(st.sampled_from(BECH32), st.data())
def test_a_bech32_address_passes_and_any_one_wrong_letter_fails(address, data):
    assert is_bech32(address)
    place = data.draw(st.integers(4, len(address) - 1))
    letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    letter = data.draw(st.sampled_from([char for char in letters if char != address[place].lower()]))
    letter = letter.upper() if address.isupper() else letter
    assert not is_bech32(address[:place] + letter + address[place + 1 :])


def test_a_bech32_address_in_mixed_case_or_with_a_foreign_letter_is_refused():
    assert not is_bech32("bc1QW508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
    assert not is_bech32("bc1bw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
    assert not is_base58check("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfN0")
    assert not is_base58check("z" * 40)
