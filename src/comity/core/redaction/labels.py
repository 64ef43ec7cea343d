"""The words that name personal data, in some forty languages, as alternatives of patterns without look-around.

They hold for Python's engine and for Rust's, so that a detector and its hint read the same words.
"""

from __future__ import annotations

from typing import Final

PHONE: Final = (
    r"telefon(?:nummer|numarası|numaram|um|umuz|szám|as|i|o|u|e|nr)?|telefon(?:ní|ne)? číslo|cep(?: tel(?:efonum?)?)?"
    r"|handy(?:nummer|nr)?|diensthandy|mobil(?:nummer|telefon|funk|nr|ni|ný|en|e)?|rufnummer|natel|fono|fone|festnetz"
    r"|t[eé]l(?:[eé]phone|[eé]copie)?|num[eé]ro fixe|teléfono(?: m[oó]vil| fijo)?|tfno|telm|tlm|m[oó]vil|celular"
    r"|tel[eé]fono|cellulare|recapito|telefone|telem[oó]vel|telefoon(?:nummer|nr)?|mobiel|(?:matka)?puhelin(?:numero)?"
    r"|kännykkä|kom[oó]rk[ai]|tel\.? ?kom|nr\.? tel|numer telefonu|mobitel|telefonszám|telp|ponsel|handphone|tel bimbit"
    r"|[đd]i[eệ]n tho[aạ]i|s[oố] [đd]i[eệ]n tho[aạ]i|sđt|đt|di [đd][oộ]ng|telepon|nomor hp|no\.? ?hp|tlf|puh|телефону?"
    r"|телефона?|тел|моб(?:ильный|ільний|илен)?|сотовый|τηλ(?:έφων[οό])?|κιν(?:ητό)?|手机(?:号码|号)?|手機(?:號碼)?"
    r"|移动电话|行動電話|座机|传真|電話(?:番号|號碼)?|电话(?:号码)?|联系电话|聯絡電話|携帯(?:電話|番号)?|ファックス"
    r"|联系方式|聯絡方式|전화(?:번호)?|휴대폰(?:번호)?|휴대전화|연락처|핸드폰|هاتفي?|الهاتف|جوالي?|الجوال|موبايل|تلفون"
    r"|تلفن|موبایل|همراه|फ़ोन|फोन|मोबाइल(?: नंबर)?|दूरभाष|ফোন|মোবাইল|โทร(?:ศัพท์)?|เบอร์(?:โทร)?|มือถือ|טלפון|נייד"
    r"|סלולרי|טל|☎|☏|📞|📱|✆|sími|farsími|tālr(?:unis)?|telefonas|telefoni|telefons|telèfon|telefonoa"
    r"|foon|selfoon|ffôn|fón|simu|mobiltelefon"
    r"|caller(?: id)?|msisdn|callback|拨打|撥打|致电|致電|お電話|連絡先|утас"
    r"|телефоны|ტელ(?:ეფონი)?|հեռ|தொலைபேசி|ஃபோன்|ఫోన్|ಫೋನ್|ഫോൺ|ફોન|ਫ਼ੋਨ|فون"
    r"|ទូរស័ព្ទ|ဖုန်း|ስልክ"
)
BIRTH: Final = (
    r"d\.?o\.?b\.?|dates? of birth|birth ?(?:date|day)s?|b-?day|born|n[ée](?:\(e\)|e)?|(?:date de )?naissance"
    r"|date naissance|ddn|geboren|geburts(?:datum|tag)|geb\.?(?:-?datum)?|(?:fecha de )?nacimiento|f(?:ec)?\.? ?nac\.?"
    r"|nacid[oa]|nac[ií]|nasci|urodzi[lł][ae]m(?: się)?|cumpleaños|(?:data di )?nascita|(?-i:[nN]at[oa])|compleanno"
    r"|(?:data de )?nascimento|nasc\.?"
    r"|nascid[oa]|geboortedatum|geb\. ?datum|verjaardag|data ur(?:odzenia|\.)?|urodzon[ya]|urodz\.?|f[öø]dd?|f[öø]dt"
    r"|f[öø]delse(?:dato|dag|datum)|f[öø]dsels(?:dato|dag)|syntym[äa](?:aika|päivä)|syntynyt|synt\.?|narozen[aý]?"
    r"|datum narozen[ií]|narodený|dátum narodenia|nar\.|született|szület[eé]si (?:dátum|id[oő])|szül\.?(?: id[oő])?"
    r"|născut[ăa]?|data na[sș]terii|ro[đd]en[a]?|datum ro[đd]enja|rojen[a]?|datum rojstva|doğum tarihi|doğumlu"
    r"|d\. tarihi|ngày sinh|sinh ngày|tanggal lahir|tgl\.? lahir|tarikh lahir|lahir|дата рождения|(?:дата )?рожд\.?"
    r"|родил(?:ся|ась)|род\.|[дг]\.? ?р\.?|дата народження|народи(?:вся|лась|лася)|дата на раждане|роден[а]?|датум рођења"
    r"|рођен[а]?|ημ(?:ερομηνία|\.|/νία) γέννησης|γεννήθηκε|γεν\.|تاريخ الميلاد|تاريخ الولادة|مواليد|تاریخ تولد|متولد|תאריך לידה"
    r"|נולדה?|जन्म(?: ?तिथि| तारीख)?|วันเกิด|เกิดวันที่|出生(?:日期|年月日|年月|于)?|生日|生年月日|誕生日|생년월일"
    r"|생일|출생일?|生まれ"
)
PASSPORT: Final = (
    r"passe?ports?|pass\.? (?:no|nr)|(?:reise)?pass-?(?:nummer|nr)|reisepass(?:nummer|nr)?|pasaporte"
    r"|passaport[oe]|paspoort(?:nummer)?"
    r"|pas(?:nummer|nr| nr)|passinumero|passin numero|paszport(?:u)?|číslo pasu|cestovní pas|útlevél(?:szám)?|pa[sș]aport"
    r"|putovnic[ae]|pasoš[a]?|pasaport(?: no)?|h[oộ] chi[eế]u|paspor|διαβατήριο|διαβατηρίου"
    r"|(?:загран)?паспорт[а]?(?: рф| гражданина(?: рф)?)?"
    r"|جواز(?: ال)?سفر|رقم الجواز|דרכון|گذرنامه|पासपोर्ट|หนังสือเดินทาง|พาสปอร์ต|护照|護照|パスポート|旅券|여권"
)
LICENCE: Final = (
    r"driv(?:er|ing)(?:['’]?s)?['’]? ?lic(?:en[cs]es?)?|driving permit|dln?|permis de conduire|führerschein(?:nummer|nr)?"
    r"|(?:permiso|licencia|carn[eé]t?) de conducir|patente di guida|carta de condução|cnh|carteira de motorista"
    r"|rijbewijs(?:nummer)?|körkort(?:snummer)?|førerkort|kørekort|ajokortti|prawo? jazdy|praw[ao] jazdy"
    r"|řidičský průkaz|vezetői engedély|jogosítvány|permis de conducere|vozačk[ae] dozvol[ae]|ehliyet|bằng lái(?: xe)?"
    r"|άδεια οδήγησης|водительское удостоверение|посвідчення водія|رخصة القيادة|רישיון נהיגה|ड्राइविंग लाइसेंस"
    r"|ใบขับขี่|驾照|驾驶证|駕照|運転免許証?|운전면허"
)
PLATE: Final = (
    r"(?:licen[cs]e|number|registration|reg\.?|car|vehicle) plates?|plate|vehicle reg(?:istration)?"
    r"|reg\.? ?(?:no|nr)\.?|(?:amtliches |kfz-)?kennzeichen|immatriculation|plaque|matr[ií]cula|placa|targa|kenteken"
    r"|nr\.? rej(?:estracyjny)?\.?|tablica rejestracyjna|spz|rendszám|registreringsnummer|plaka|госномер|гос\. номер"
    r"|номерной знак|车牌(?:号)?|車牌"
)
ACCOUNT: Final = (
    r"(?:bank[ -]?)?konto[- ]?(?:nummer|nr)\.?|kto\.? ?-?nr\.?|bankkonto|bankverbindung"
    r"|(?:num[eé]ro |n[°o]\.? )?de compte|(?:compte|cuenta|conto|conta) n[°ºo]?|rib"
    r"|(?:número|n[º°o]\.?) de cuenta|cuenta (?:bancaria|corriente)|ccc|conto corrente|c/c"
    r"|numero di conto|conta(?: corrente| banc[aá]ria)|nib|bankrekening(?:nummer|nr)?"
    r"|rekening(?:nummer|nr)|bankgiro|plusgiro|tilinumero"
    r"|(?:numer|nr\.?) (?:konta|rachunku)|rachunek|číslo účtu|č\. ?ú\.|(?:bank)?számlaszám|cont bancar|broj računa"
    r"|iban no|hesap (?:no|numarası)|αριθμός λογαριασμού|расч[её]тный сч[её]т|р/с|номер сч[её]та|номер рахунку|رقم الحساب"
    r"|מספר חשבון|खाता संख्या|s[oố] tài kho[aả]n|stk|(?:nomor|no\.?) ?rek(?:ening)?|银行[账帐]号|[账帐]号|卡号"
    r"|口座(?:番号)?[:： ]{0,2}(?:普通|当座)|口座番号|계좌(?:번호)?|clabe|cbu|nuban|bank a/?c"
)
ADDRESS: Final = (
    r"(?:home|street|mailing|postal|shipping|billing|delivery|residential|private) address|address|anschrift|wohnhaft"
    r"|wohnadresse|(?:post|liefer|rechnungs)?adress[ea]?|domicile|domicilio|direcci[oó]n|indirizzo|residenza"
    r"|residente in|endereço|morada|(?:woon)?adres(?: zamieszkania)?|osoite|adresa|bydliště|lakcím|lakcíme|διεύθυνση"
    r"|адрес|адреса|проживает|العنوان|כתובת|पता|ที่อยู่|địa chỉ|alamat|地址|住址|住所|주소|lives? at|living at"
    r"|resid(?:es|ing) at|ship to|deliver to"
)
SIGN_IN: Final = (
    r"pass[ _-]?(?:word|phrase|wd|code)|passwd|pwd|psw|(?:initial|start|einmal|wlan|admin|haupt|master|standard"
    r"|benutzer|system|router|netzwerk|server|login)?(?:kennwort|passwort)"
    r"|mot de passe|mdp|contrase[nñ]a"
    r"|clave de acceso|senha|wachtwoord|has[lł]o|l[oö]senord|lozinka|jelsz[oó]|parol[aă]|adgangskode|kodeord|passord"
    r"|salasana|heslo|geslo|m[aậ]t kh[aẩ]u|kata sandi|пароль|парола|лозинка|κωδικός(?: πρόσβασης)?"
    r"|كلمة (?:المرور|السر)|סיסמה|पासवर्ड|รหัสผ่าน|密码|密碼|パスワード|暗証番号|비밀번호|암호|şifre|pin[ _-]?code|wi-?fi (?:code"
    r"|key)|wlan-?schlüssel|wpa2? key|passkey"
)
USER_NAME: Final = (
    r"(?:user|login|screen|account|nick)[ _-]?name|user[ _-]?id|login|benutzer(?:name|kennung)|anmeldename"
    r"|nom d['’ _]utilisateur|identifiant|nombre de usuario|usuario|nome utente|nome de utilizador|utilizador"
    r"|gebruikersnaam|användarnamn|brukernavn|brugernavn|käyttäjätunnus|nazwa użytkownika|u[zž]ivatelské jméno"
    r"|felhasználónév|nume de utilizator|kullanıcı adı|логин|имя пользователя|ім['’]я користувача|用户名|用戶名|帳號"
    r"|ユーザー名|아이디|사용자 ?이름|اسم المستخدم|שם משתמש"
)
MONTH: Final = (
    r"(?:jan(?:uary|uar|uari|vier)?|jänner|enero|gennaio|janeiro|stycznia|ledna|ianuarie|січня|января|ocak"
    r"|feb(?:ruary|ruar|ruari|brero|braio)?|feber|fév(?:rier)?|febrero|fevereiro|lutego|února|лютого|февраля|şubat"
    r"|mar(?:ch|s|zo|t|ço|ca)?|märz|maart|března|березня|марта|mart|apr(?:il|ile|ilie)?|avr(?:il)?|abril|kwietnia"
    r"|dubna|квітня|апреля|nisan|may|mai|maj|maggio|mayo|maio|mei|maja|května|травня|мая|mayıs|june?|juni|juin|junio"
    r"|giugno|junho|czerwca|června|червня|июня|haziran|july?|juli|juillet|julio|luglio|julho|lipca|července|липня|июля"
    r"|temmuz|aug(?:ust|ustus|usti)?|août|agosto|sierpnia|srpna|серпня|августа|ağustos"
    r"|sept?(?:ember|embre|tembre|iembre)?|settembre|setembro|września|září|вересня|сентября|eylül"
    r"|oct(?:ober|obre|ubre)?|okt(?:ober)?|ottobre|outubro|października|října|жовтня|октября|ekim"
    r"|nov(?:ember|embre|iembre|embro)?|novembro|listopada|listopadu|листопада|ноября|kasım"
    r"|de[csz](?:ember|embre|embro|embrie)?|déc(?:embre)?|diciembre|dicembre|dezembro|grudnia|prosince|грудня|декабря|aralık"
    r"|január|február|március|április|május|június|július|augusztus|szeptember|október|marts|maret|martie|aprilie|iunie|iulie"
    r"|septembrie|octombrie|noiembrie|februarie|agustus|siječnja|veljače|ožujka|travnja|svibnja|lipnja|srpnja|kolovoza|rujna"
    r"|studenoga?|prosinca|(?:tammi|helmi|maalis|huhti|touko|kesä|heinä|elo|syys|loka|marras|joulu)kuuta"
    r"|януари|февруари|март|април|май|юни|юли|август|септември|октомври|ноември|декември"
    r"|(?:ιανουαρ|φεβρουαρ|μαρτ|απριλ|μα[ΐί]|ιουν|ιουλ|σεπτεμβρ|οκτωβρ|νοεμβρ|δεκεμβρ)ίου|μαΐου|αυγούστου"
    r"|يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر"
    r"|ב?(?:ינואר|פברואר|מרץ|אפריל|מאי|יוני|יולי|אוגוסט|ספטמבר|אוקטובר|נובמבר|דצמבר)"
    r"|जनवरी|फ़?रवरी|मार्च|अप्रैल|मई|जून|जुलाई|अगस्त|सितंबर|अक्टूबर|नवंबर|दिसंबर)"
)
