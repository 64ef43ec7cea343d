"""What the words right beside a number without a label say of it: that it is a person's, or the number of a thing."""

from __future__ import annotations

import re
from typing import Final

from comity.core.redaction.labels import PERSONS
from comity.core.redaction.shapes import is_foreign

# Words that may stand right before, or right behind, a number that has no label and is still a person's. Any other word in
# small letters is the thing that the number belongs to: "gear set 202-555-0143", "555-12-3456 washer".
_BESIDE_ALONE = frozenset(
    re.findall(
        r"[^\W\d]+",
        "is was are were be at on to for or and the a an my our your his her their its number numbers via with under "
        "please me him them us you it by new old from as in of that this so just only still now again then here there "
        "also if after before ext x any anytime today between when about regarding until till tomorrow mobile home work "
        "office asap first but instead not thanks thank which who because during directly daily tonight we i he she "
        "they anruf has had cell fax tel phone telephone phones out later next same every whenever extension "
        "immediately soon morning while within yes day call calls called calling text texted texting dial dialled "
        "rang reach reached contact contacted try use ask leave message answer answered gave gives give says said got "
        "get reads read wrote write note noted changed change keep one friend mum mom dad wife husband son daughter "
        "sister brother boss colleague doctor reception als am auf bei unter oder und ist war ab von nach mit für zu "
        "zum zur der die das den dem ein eine mein meine ihre seine ruf anrufen nummer rufnummer erreichbar unsere le "
        "la les au aux un une de du des ou et est sur pour par chez avec mon ma mes numéro appelez appeler joindre el "
        "al los las o y e en con por para es su mi llame llamar número il lo gli da dal del della di per sono mio mia "
        "chiama numero ao do dos meu minha ligue até op van voor met bel mijn fixe fijo fisso festnetz handy mobil gsm "
        "portable cellulare móvil vast erbeten bitte born geboren dob née nacido nato passport account iban bic email "
        "plutôt dès après avant car donc mais quand si elle il je on nous vous demain merci svp lieber statt anstatt "
        "aber wenn denn danke "
        "invece piuttosto dopo prima ma se quando grazie mejor antes después pero cuando si gracias liever graag maar want als "
        "raczej zamiast ale gdy depois mas quando obrigado obrigada hellre istället men tack radši ale když děkuji "
        "mail card licence license plate address zip postcode username password resident citizen employee patient "
        "customer client member person holder tenant belongs zero nine two three four five six seven eight toll appears "
        "matches worked issued verified nhs ssn sin id gerne och eller på mitt min na od lub albo po numer mój dzwoń "
        "over om tussen zwischen entre tra fra mellan mellem między mezi između pomiędzy angående vedrørende gällende ni "
        "száma poslije posle nakon prije kad kada samo pevná на по за с со от до и или номер номера номеру моб"
        " тел мой мій моят "
        "zadzwoń heute morgen morgens abends vormittags nachmittags jetzt sofort immer nur noch bis seit wenn falls da weil "
        "demain matin soir maintenant toujours après avant dès si car mais hoy mañana tarde noche ahora siempre después antes "
        "desde hasta si porque pero oggi domani mattina sera adesso sempre dopo prima se perché ma hoje amanhã manhã "
        "ainda agora "
        "sempre depois antes desde se mas vandaag vanavond nu altijd na voor tot als maar idag imorgon nu alltid efter före om "
        "men dziś dzisiaj jutro rano wieczorem teraz zawsze przed jeśli ale dnes zítra ráno večer teď vždy před když charge "
        "spouse partner applicant dependent child mother father parent guarantor insured beneficiary claimant witness "
        "driver nurse "
        "caller guest visitor subscriber student pupil teacher lawyer attorney landlord buyer seller borrower donor candidate "
        "neighbour neighbor aunt uncle cousin grandmother grandfather roommate carer caregiver guardian lady man woman file "
        "épouse mari conjoint fils fille mère père client cliente paciente paziente hijo hija madre padre esposa marido moglie "
        "marito figlio figlia żona mąż syn córka klient klienta pacjent pacjenta patiënt klant vrouw man hustru make kund "
        "exp expires expiring expiry cvv cvc csc valid gültig caduca scad validade amount declined approved "
        "este jest je sunt är "
        "charged refund refunded yesterday ago twice once already recently previously earlier currently online monthly"
        " weekly "
        "gestern bereits hier déjà ayer ieri ontem gisteren wczoraj včera вчера pay paid paying using zahlen bezahlt"
        " payé pagado pagato pago betaald "
        "mich mir moi mij mig meg mnie mě minua engem beni bizi onu меня мене мені "
        "chiffres digits ziffern cifras cifre cijfers cyfrach cyframi číslicemi siffror siffer numeroin цифрами цифри цифры "
        "privat dienstlich geschäftlich privé perso maison casa trabajo oficina lavoro ufficio domicilio thuis werk dom praca "
        "visa mastercard amex maestro jcb discover unionpay diners credit debit full actual correct "
        "numeroon numerosta numerem numeru numery číslo číslu čísle számon számot számra номер номеру номером numret nummeret "
        "numarası numaram numara numarasına numarasından numarayı numaradan numărul numero numéros "
        "wegen bezüglich betreffend concernant sobre riguardo ohledně odnośnie "
        "tiens tenez voici voilà voila note notez compose composez ecco tieni toma aquí aqui ja oui sí si sì sim tak yeah yep"
        " yup sure ok okay "
        "svp stp merci possible urgent vite pls plz thx zurück terug tillbaka tilbake tilbage back wieczorem proszę domattina ",
    )
)
BESIDE_ALONE: Final = "|".join(sorted(_BESIDE_ALONE))
# What the reader is asked to do with a phone number: "06 48 29 17 36 appelle le après 18h".
_CALLS = re.compile(
    r"r?appel(?:le|er|ez)(?:moi|le|la)?|sonnez?|[eé]cri(?:s|vez)|envoi(?:e|es|ez)|contactez?|joign?[se]z?|demandez|textez?"
    r"|(?:ri)?chiama(?:mi|lo|la|te|re)?|scrivi(?:mi|gli|le)?|manda(?:me|mi)?|ll[aá]m[ae](?:me|lo|la|le|nos|r)?"
    r"|escr[ií]be(?:me|le)?|lig(?:ar|ue|uem)|cham(?:a|ar|e)|fala|ruf(?:e|t|en)?|schreib(?:e|t|en)?|meld(?:e|et|en)"
    r"|frag(?:e|t|en)?|bel(?:len)?|skriv|(?:za)?dzwo[nń](?:cie)?|napisz|(?:za)?volej(?:te)?|napi[sš](?:te)?|soita"
    r"|звони(?:те)?|набери(?:те)?|пиши(?:те)?|ara(?:yın)?|hubungi|telp"
    r"|(?:an|zurück|durch)gerufen|erreich(?:t|en|bar)|(?:an|zurück)rufen|kontaktier(?:t|en)|(?:terug|op)?gebeld|(?:terug)?bellen"
    r"|bereik(?:t|en|baar)|r?appelée?|rappeler|joindre|jointe?|ringas|ringes|uppringd|oddzwonić|zadzwonić|zavolat|nazvati|zovite"
)
# "…, call after six", "…, телефонувати вранці": what asks to call a number that stands before it. Rust's engine reads it too.
CALLED: Final = (
    r"[,;.]?[ ](?:[–—\-][ ])?(?i:(?:(?:please|bitte|merci de|por favor|proszę|prosím|vennligst|lütfen)[ ])?"
    r"(?:(?:call|ring|phone|text)[ ](?:him|her|me|us|them|back|after|before|between|any ?time|only|when|mornings?|evenings?)"
    r"|(?:appelez|rappelez|appeler|rappeler|llam[ae]|llamar|llamad|chiamare|chiamate|chiami|ligue|ligar|chamar|bellen|anrufen|rufen"
    r"|ringe|ringa|soittaa|soita|hívja|hívják|hívd|sunați|trucar?|volat|volejte|zavolat|zavolejte|dzwonić|dzwoń|zadzwonić"
    r"|helista(?:da|ge)?|skambin(?:ti|kite)|zvan[īi]t|hringj?a|piga|gọi|звонить|звоните|звони|телефонувати|дзвонити|дзвоніть"
    r"|звъни(?:те)?|обаждай(?:те)?|τηλεφωνήστε|aramak|arayın|nazvati|zovite|hubungi|ring[ ](?:før|etter|efter"
    r"|innan|helst|gerne|gärna)))"
    r")"
)
_CALLED = re.compile(rf"{CALLED}(?![^\W_])")
_WORD_BEFORE = re.compile(r"(?:(?<![^\s(])(?P<word>[^\W\d_]{2,})\.?[ ]|[0-9]/[A-Z]{1,3}[ ])\Z")
_WORD_BEHIND = re.compile(r"[ ](?P<word>[a-z][^\W\d_]{2,24})(?![\w=:])")


def is_things(before: str, after: str) -> bool:
    """Return whether the word right before or behind a number says that it is the number of a thing."""
    near = _WORD_BEFORE.search(before)
    if near is not None:
        word = near["word"]
        if (
            word is None
            or (word.isupper() and len(word) <= 5 and word.lower() not in _BESIDE_ALONE)
            or (word[0].islower() and word.lower() not in _BESIDE_ALONE and word.lower() not in PERSONS)
        ):
            return True
    behind = _WORD_BEHIND.match(after)
    return behind is not None and behind["word"] not in _BESIDE_ALONE and not _CALLS.fullmatch(behind["word"])


def is_called(after: str) -> bool:
    """Return whether the words behind a number ask to call it."""
    return _CALLED.match(after) is not None


_SAID = re.compile(
    r"[\"'”]?[ ](?:is|was|are|ist|war|est|es|è|é|är|er)[ ](?:the|our|an?|its|die|der|das|eine?|le|la|un|une|el"
    r"|il)[ ]([^\W\d_]{3,20})"
)


_WORKS = frozenset({"album", "song", "single", "novel", "book", "film", "movie", "title", "band", "poem", "painting", "game"})


def is_said_of_thing(after: str) -> bool:
    """Return whether the words behind a number say whose it is: "202-555-0143 is the part number"."""
    said = _SAID.match(after)
    return said is not None and (said[1].lower() in _WORKS or is_foreign(said[1].lower()))
