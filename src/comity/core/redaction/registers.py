"""The words that name the numbers that states give to people and to what they tax, in the languages of these states."""

from __future__ import annotations

from typing import Final

# The module of python-stdnum, and the words that name its number.
PERSONAL: Final = {
    "ar.dni": r"dni argentino|documento nacional",
    "insured": r"svnr|sv-?nummer|rvnr|rv-?nummer|sozialversicherungsnummer|rentenversicherungsnummer",
    "social": r"versicherungsnummer",
    "be.nn": r"rijksregister(?:nummer)?|national regist(?:er|ration|ry)|num[eé]ro (?:de registre )?national"
    "|registre national|insz|niss",
    "bg.egn": r"егн|egn|ucn|единен граждански номер",
    "ch.ssn": r"ahv(?:-?n(?:umme)?r)?|avs|oasi",
    "cl.rut": r"rut|run|r\.u\.t",
    "cn.ric": r"身份证(?:号码|号)?|公民身份号码|证件号(?:码)?|resident id(?:entity)?(?: card)?|chinese id",
    "cz.rc": r"rodn[eé] [cč][ií]slo|rodn[eé] č|r\.? ?č|číslo pojištěnce",
    "dk.cpr": r"cpr(?:-?n(?:umme)?r)?|personnummer dk",
    "do.cedula": r"c[eé]dula dominicana",
    "document": (
        r"documento (?:nacional )?de identidad|tarjeta de identidad|carn[eé]t? de identidad"
        r"|c[eé]dula de extranjer[ií]a"
    ),
    "cedula": r"c[eé]dula(?: ecuatoriana| de (?:ciudadan[ií]a|identidad)| f[ií]sica)?|c\.c\.?",
    "cc": "cc",
    "ci": r"ci|c\.i\.?",
    "ee.ik": r"isikukood|personal (?:identification )?code",
    "es.dni": r"dni|d\.n\.i|documento",
    "es.nie": r"nie|n\.i\.e|n[uú]mero de identidad de extranjero",
    "fi.hetu": r"hetu|sotu|(?:finnish )?personal identity code|henkil[oö]tunnu(?:s|ks(?:en|eni|esi))|henk\.? ?tunnus",
    "fr.nir": r"nir|s[eé]cu|n[°o] ss|s[eé]curit[eé] sociale|num[eé]ro (?:de )?(?:s[eé]cu(?:rit[eé] sociale)?|ss)|insee",
    "gr.amka": r"amka|αμκα|α\.μ\.κ\.α",
    "hr.oib": r"oib|osobni identifikacijski broj",
    "id.nik": r"nik|ktp|nomor induk kependudukan",
    "ie.pps": r"pps[n]?",
    "il.idnr": r"teudat zehut|תעודת זהות|מספר ה?זהות|ת[.\"״]? ?ז|israeli id",
    "in_.aadhaar": r"aadhaar|aadhar|आधार(?: संख्या| नंबर)?|uidai",
    "in_.epic": r"voter id|epic",
    "is_.kennitala": r"kennitala|kt",
    "jp.in_": r"マイナンバー|個人番号|my number",
    "kr.rrn": r"주민 ?등록 ?번호|주민번호|외국인 ?등록 ?번호|rrn|resident registration",
    "lt.asmens": r"asmens kodas",
    "md.idno": r"idnp",
    "mx.curp": r"curp",
    "my.nric": r"mykad|ic|no\.? (?:kp|ic)|ic (?:no|number)|nric malaysia|kad pengenalan",
    "nl.bsn": r"bsn|burgerservicenummer|sofinummer",
    "no.fodselsnummer": r"f[oø]dselsnummer|fnr|d-nummer",
    "pe.cui": r"cui|dni peruano",
    "pk.cnic": r"cnic|nicop|(?:قومی )?شناختی کارڈ(?: نمبر)?",
    "pl.pesel": r"pesel",
    "pt.cc": r"cart[aã]o (?:de |do )?cidad[aã]o|documento de identificação",
    "ro.cnp": r"cnp|cod numeric personal",
    "se.personnummer": r"personnummer|pers\.?nummer|p\.nummer|samordningsnummer|pnr|personal (?:identity )?number",
    "si.emso": r"emšo|emso|jmbg|јмбг|embg|ембг|umcn",
    "sk.rc": r"rodn[eé] [cč][ií]slo sk",
    "th.pin": r"(?:เลข|หมายเลข|รหัส)(?:ที่)?(?:บัตร)?(?:ประจำตัว)?ประชาชน|บัตร(?:ประจำตัว)?ประชาชน|thai id",
    "tr.tckimlik": r"t\.?c\.? kimlik(?: no| numarası)?|kimlik (?:no|numarası)|nüfus cüzdanı|tckn|tc no",
    "tr": r"tc|t\.c",
    "tw": r"身分證字號|身分證(?:號碼)?|taiwan id",
    "hk": r"hkid|香港身份證(?:號碼)?|身份證(?:號碼)?|hong kong id(?:entity card)?",
    "sg": r"nric(?:/fin)?|fin no|fin",
    "ru.snils": r"снилс|snils",
    "ve.rif": r"c[eé]dula venezolana",
    "za.idnr": r"id (?:number|no|nr)|south african id|sa id|rsa id",
    "lv": r"personas kods",
    "medicare_card": r"medicare (?:card )?(?:number|no)",
    "medicare": r"medicare(?: card| beneficiary(?: id(?:entifier)?| number)?)?|mbi",
    "ihi": r"ihi|individual healthcare identifier",
    "au.crn": r"crn",
    "nz.nhi": r"nhi",
    "lk.nic": r"nic",
    "mx.nss": r"nss|imss|n[uú]mero de seguro social",
    "mx.ine": r"ine|clave de elector",
    "br.pis": r"pis|pasep",
    "br.cns": r"cns|cart[aã]o (?:do )?sus|cart[aã]o nacional de sa[uú]de",
    "br.titulo": r"t[ií]tulo de eleitor|t[ií]tulo eleitoral",
    "es.nuss": r"nuss|n[uú]mero de (?:la )?seguridad social|n[º°o]\.? (?:de )?(?:la )?seguridad social",
    "pt.niss": r"(?:n[uú]mero|n[. ]?[º°o][. ]?) de segurança social",
    "pt.utente": r"n\.[º°] de utente|n[uú]mero de utente|n[º°o]\.? de utente|utente sns",
    "kz.iin": r"иин|жсн|iin",
    "uz.pinfl": r"пинфл|pinfl|jshshir",
    "by.number": r"личный номер|идентификационный номер",
    "ru.policy": r"полис(?: омс)?|омс",
    "ua.unzr": r"унзр",
    "eg.number": r"(?:ال)?رقم (?:ال)?قومي|رقم البطاقة القومية",
    "gt.dpi": r"dpi|cui guatemala",
    "sv.dui": r"dui",
    "in_.uan": r"uan",
    "in_.abha": r"abha(?: id)?",
    "ke.id": r"kitambulisho|namba ya kitambulisho",
    "ke.pin": r"kra pin",
    "ae": r"emirates id|(?:رقم )?الهوية الإماراتية",
    "qa": r"qid|qatar(?:i)? id",
    "kw": r"الرقم المدني|رقم البطاقة المدنية",
    "sa": (r"(?:رقم )?(?:ال)?[إا]قامة|iqama|(?:رقم )?الهوية الوطنية|(?:رقم )?السجل المدني|بطاقة الهوية"),
    "maghreb": (
        r"cnie|cin|(?:رقم )?(?:ال)?بطاقة (?:التعريف )?(?:الوطنية|الشخصية)|(?:رقم )?بطاقة التعريف(?: الوطنية)?"
        r"|carte nationale"
    ),
    "ph.sss": r"sss",
    "ph.pagibig": r"pag-?ibig(?: mid)?(?: number| no)?",
    "np": r"citizenship (?:number|no|certificate(?: number| no)?)|नागरिकता (?:नम्बर|नं)",
    "ir": r"(?:کد ?|شماره )ملی",
    "bd": r"(?:জাতীয় পরিচয়পত্র|এনআইডি)(?: নম্বর| নং)?",
    "ge": r"პირადი ნომერი",
    "am": r"հծհ",
    "md.person": r"cod personal",
    "gr.card": r"(?:αριθμός |αρ\.? )?(?:δελτίου |δελτίο )?(?:αστυνομικής )?ταυτότητας?|αδτ|α\.δ\.τ",
    "de.card": r"personalausweis-?(?:nummer|nr)?|ausweis-?(?:nummer|nr)?",
    "hu.card": r"(?:személyi(?: ig(?:azolvány)?)?|szig)\.?(?: ?száma?)?",
    "us.alien": r"a-number|alien (?:registration )?(?:number|no)|uscis (?:number|no)",
    "ca.phn": r"phn|personal health number",
    "jp.pension": r"年金番号|基礎年金番号",
    "jp.residence": r"在留カード(?:番号)?",
    "tw.residence": r"統一證號",
    "any_social": r"social (?:security|insurance)(?: number| no)?",
    "health": (
        r"health (?:card|insurance)(?: (?:policy|member|plan|card|id))?(?: number| no)?"
        r"|krankenversicherten?-?n(?:umme)?r|kvnr|krankenversicherungsnummer"
        r"|versichertennummer"
        r"|ohip|chi(?: number)|mrn|medical record(?: number| no)?|patient (?:id|number|no)|assurance maladie|carte vitale|ramq"
        r"|tessera sanitaria|tarjeta sanitaria|hospital (?:number|no)|insurance member(?: id| number| no)?"
        r"|health plan (?:member )?id"
        r"|patienten?-?n(?:umme)?r|versicherten-?n(?:umme)?r|(?:num[eé]ro (?:de )?)?dossier patient(?: ipp)?"
        r"|num[eé]ro (?:de )?patient|ipp|numero (?:di )?paziente"
        r"|numer pacjenta|nr pacjenta|patiëntnummer|polisnummer zorgverzekering|número de (?:paciente"
        r"|historia clínica)|historia clínica"
        r"|病历号|病歷號|診察券番号|患者番号|환자 ?번호|номер (?:пациента|медкарты|медицинской карты)|رقم المريض"
        r"|מספר מטופל|hasta (?:no|numarası|kayıt no)|n\.? ?h\.? ?c|número de (?:processo clínico|utente|doente)"
        r"|processo clínico"
        r"|número d[eo] (?:utente|doente|prontuário|paciente)|prontuário|(?:numero (?:di|della) )?cartella clinica"
        r"|(?:nr|numer) (?:kartoteki|historii choroby)|pasi?entnummer|patient(?:journal)?nummer|číslo (?:pacienta"
        r"|pojištěn(?:ce|í))"
        r"|číslo poistenca|potilasnumero|beteg(?:szám|azonosító)|număr(?:ul)? (?:de )?pacient|αριθμός ασθενούς"
        r"|(?:номер )?полиса? омс"
        r"|номер пацієнта|病案号|住院号|就诊卡号|رقم الملف الطبي|mã bệnh nhân|nomor rekam medis|no\.? rm"
    ),
    "member": (
        r"(?:member(?:ship)?|subscriber|enrollee|insured|policy ?holder|beneficiary)"
        r" (?:id(?:entification)?(?: number| no)?|number|no)"
        r"|(?:medicaid|medi-?cal)(?: id)?(?: number| no)?"
    ),
    "fr.cni": r"carte (?:nationale )?d['’ ]identit[eé]|cni",
    "any": (
        r"civil id|rg|registro geral|carteira de identidade|identidade|c[eé]dula de ciudadan[ií]a|carn[eé]t de identidad"
        r"|(?:č(?:íslo|\.) ?)?občansk(?:ý|ého) průkazu?|č(?:íslo|[. ]) ?op|op č|občians(?:ky|keho) preukazu?"
        r"|osobna iskaznica|lična karta"
        r"|national id(?:entity|entification)?(?: card)?|personal id(?:entification)?|identity card|id card"
        r"|citizen id"
        r"|carta d[’' ]identit[aà]|identiteitskaart|id-?kaart|dow[oó]du?(?: osobist(?:y"
        r"|ego))?|паспорт"
        r"|جواز|رقم (?:بطاقة )?الهوية|شناسنامه|身份证件|bvn|bank verification number|nin|ghana card|sss (?:no|number)|umid"
        r"|phil ?health(?: no| number)?|philsys|cccd"
        r"|cmnd|chứng minh nhân dân|căn cước(?: công dân)?|taj(?: szám)?|nid|matricule(?: national)?"
        r"|pièce d['’ ]identité|carte de identitate(?: seri[ae])?|buletin(?: de identitate)?(?: seri[ae])?"
        r"|id-?картк[аи]|e-?id (?:card|no|number)|voter(?:s|'s)? card"
        r"|insured id|insurance id|[cb]\.?i\.?,? seri[ae]"
    ),
}
TAX: Final = {
    "ar.cuit": r"cui[tl]",
    "at.tin": r"abgabenkontonummer",
    "az.voen": r"vöen|voen",
    "au.abn": r"abn|australian business number",
    "au.tfn": r"tfn|tax file",
    "br.cpf": r"cpf|c\.p\.f",
    "pix": r"(?:chave )?pix",
    "br.cnpj": r"cnpj",
    "ch.uid": r"mwst-?(?:nr|nummer)|num[eé]ro ide|numero idi",
    "by.unp": r"у[нп]п|унн",
    "ca.bn": r"business number|(?:gst/)?hst (?:number|no)",
    "cn.uscc": r"税号|稅號|纳税人(?:识别号|编号)|统一社会信用代码|社会信用代码",
    "cz.dic": r"dič|ič dph",
    "dk.cvr": r"cvr(?:-?nummer|-?nr)?|moms-?(?:nummer|nr)|se-?nummer",
    "do.rnc": r"rnc",
    "eg.tax": r"(?:ال)?رقم (?:التسجيل )?الضريبي",
    "gulf": r"trn|tax registration number",
    "es.cif": r"cif",
    "fi.vat": r"y-?tunnus|alv-?(?:numero|nro|tunniste)|arvonlisäveronumero",
    "kr.brn": r"사업자 ?(?:등록 ?)?번호",
    "no.mva": r"mva-?(?:nummer|nr)?|organisasjonsnummer",
    "ro.cui": r"cod(?:ul)? fiscal|cod(?:ul)? unic de înregistrare|c\.u\.i",
    "rs.pib": r"пиб|pib|порески број|poreski (?:identifikacioni )?broj",
    "se.vat": r"moms(?:registrerings)?-?(?:nummer|nr)",
    "sg.uen": r"uen",
    "si.ddv": r"davčna (?:številka|št\.?)|id za ddv",
    "th.tin": r"(?:เลข)?(?:ประจำตัว)?ผู้เสียภาษี",
    "tw.ubn": r"統一編號|統編",
    "co.nit": r"nit|n\.i\.t",
    "steuer": r"st\.?-?id(?:-?nr)?|steuer[- ]?(?:id(?:entifikationsnummer|nr)?|identnummer)(?:-?nr)?",
    "de.idnr": (
        r"(?:steuerliche )?identifikationsnummer|steuer[- ]?(?:id(?:entifikationsnummer)?|identnummer|idnr)|idnr"
        r"|tin de|tax id germany"
    ),
    "de.stnr": r"steuer-?n(?:umme)?r|st\.?-?nr",
    "nif": r"nif",
    "uid": r"uid(?:-?nummer|-?nr)?",
    "vat_number": r"vat (?:reg(?:istration|\.)? )?(?:number|no|nr|id)|btw-?(?:id|identificatie)?(?:nummer|nr)",
    "eu.vat": (
        r"vat(?: id| reg(?:istration|\.)?)?|(?:ust|umsatzsteuer)[- ]?id(?:ent(?:ifikations)?)?-?(?:nr|nummer)?"
        r"|tva(?: intra(?:communautaire)?)?|btw(?:-?id)?|ondernemings-?(?:nummer|nr)"
        r"|num[eé]ro d['’ ]entreprise|ддс(?: номер)?|ин по зддс|km(?:kr|v)(?: number| nr)?|käibemaksukohustuslase (?:number|nr)"
        r"|pvm(?: mokėtojo)? kodas|pvn(?: reģistrācijas)? (?:numurs|nr)|közösségi adószám|nip ue|dph"
    ),
    "fr.nif": r"spi|(?:num[eé]ro|n[°ºo]\.?) fiscal(?: de référence)?",
    "gb.utr": r"utr|unique taxpayer reference",
    "gr.vat": r"afm|αφμ|α\.φ\.μ|αριθμ(?:ός|ού) φορολογικού μητρώου",
    "hu.anum": r"ad[oó]sz[aá]m",
    "hu": r"ad[oó]azonos[ií]t[oó](?: jel)?",
    "id.npwp": r"npwp",
    "in_.pan": r"pan(?: card)?|पैन(?: कार्ड)?",
    "in_.gstin": r"gstin|gst (?:no|number)|जीएसटी",
    "it.iva": r"partita iva|p\.? ?iva|p\.i",
    "any_tax": r"tin|tax ?payer(?: id(?:entification)?)?|tax id(?:entification)?|(?:tax|fiscal) (?:number|code)",
    "it.codicefiscale": r"codice fiscale|c[oó]digo fiscal|c\.? ?f\.?|cod\.? fisc(?:ale|\.)?",
    "mx.rfc": r"rfc|registro federal de contribuyentes",
    "nz.ird": r"ird",
    "pl.nip": r"nip",
    "pt.nif": r"nif pt|contribuinte|n[uú]mero de identificação fiscal",
    "ru.inn": r"инн|inn",
    "ua.rntrc": r"рнокпп|іпн|rnokpp|ідентифікаційний (?:код|номер)|податковий номер",
    "ua.edrpou": r"(?:код )?єдрпоу",
    "mz.nuit": r"nuit",
    "tr.vkn": r"vergi (?:kimlik )?(?:no|numarası)|vkn",
    "pe.ruc": r"ruc",
    "ve.tax": r"rif",
    "uy.rut": r"rut uruguay|rut",
    "vn.mst": r"mst|m[aã] s[oố] thu[eế](?: cá nhân)?",
    "za.tin": r"sars(?: tax)?|(?:income )?tax reference(?: number| no)?",
}
