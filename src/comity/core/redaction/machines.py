"""The words that say that an address of a private network, or of an example, is no person's.

Many networks have the same private address at the same time, so it says little of a person. It is hidden nevertheless
where it may be that of a person's device, and left where the words beside it name a part of a network, or what serves in it.
"""

from __future__ import annotations

import re
from typing import Final

from comity.core.redaction.shapes import LatePattern

_MACHINES = (
    r"routers?|routes?|routed|routing|ip route|(?:default|static) via|via|gateways?|gw|next[ -]?hops?|netmasks?|subnets?|masks?"
    r"|cidr|prefix(?:es)?|supernet|broadcast|dns|name[ -]?servers?|resolvers?|ns[0-9]?|ntp|time servers?|dhcp|relay|snmp|syslog"
    r"|radius|ldap|nfs|iscsi|tftp|pxe|(?:re)?listen(?:s|ing|ers?|[ -]?addr(?:ess)?)?|bind(?:s|ing)?(?:[ -]?addr(?:ess)?)?"
    r"|bound to|advertis\w{1,3}(?:[ -]?addr(?:ess)?)?|peers?|peering|neighbou?rs?|bgp|ospf|eigrp|vrrp|hsrp|glbp|carp|vips?"
    r"|virtual ip|keepalived?|upstreams?|backends?|proxy[ _]pass|(?:reverse )?proxy|load[ -]?balancers?|lb|haproxy|nginx|envoy"
    r"|ingress|egress|pods?|pod ?ips?|host ?ip|nodes?|node ?ip|cluster ?ips?|clusters?|containers?|docker|kube\w{0,12}|k8s|etcd"
    r"|replicas?|masters?|primary|secondary|standby|services?|endpoints?|metadata|vlans?|vxlan|vni|vrf|svi|loopbacks?"
    r"|interfaces?|ifaces?|inet6?|(?:eth|wlan|br|bond|tun|wg|lo|en[ops])[0-9]{1,3}|nics?|trunks?|uplinks?|tunnels?|ipsec|[sd]?nat"
    r"|masquerade|iptables|nft|firewalls?|fw|acls?|permits?|switch(?:es)?|access points?|aps?|controllers?|management|mgmt|oob"
    r"|ipmi|bmc|idrac|ilo|plcs?|hmis?|scada|modbus|opc[ -]?ua|bacnet|rtus?|inverters?|sensors?|printers?"
    r"|plotters?|cameras?|nvr|dvr|kameras?|cámaras?|câmeras?|telecamer[ae]|caméras?|kamer[ay]|rejestrator|(?:wetter)?stations?|targets?|runners?"
    r"|collectors?|exporters?|bridges?|hubs?|kiosks?|set-?top box(?:es)?|thermostats?"
    r"|nas|san|ups|pdus?|vms?|hypervisors?|esxi|proxmox|servers?|databases?|db|(?:redis|postgres|mysql|kafka)(?!:)|brokers?|scopes?"
    r"|pools?|ranges?|hosts file|traceroute|arp|ping|dig|nslookup|telnet|nmap|ssh|scp|sftp|rsync|mount|connect to"
    r"|(?:web|app|srv|mx)-?[0-9]{1,3}|allow|deny|(?:rout|serv|print"
    r"|skriv)(?:er)?(?:e[nr]|n|aren)"
    r"|(?:standard|netz)gateways?|netzmaske|subnetz|schnittstellen?|namensserver|zeitserver|drucker|steuerung|passerelle|routeur"
    r"|commutateur|masque|serveurs?|imprimante|automate|sous-réseau|puerta de enlace|pasarela|enrutador|conmutador|máscara"
    r"|servidor(?:es)?|impresora|interfaz|subred|instradamento|maschera|stampante|interfaccia|sottorete|commutatore|roteador"
    r"|comutador|impressora|sub-?rede|subnetmasker|schakelaar|brama|bramka|trasa|maska|serwer|drukarka|przełącznik|podsieć|brána"
    r"|směrovač|přepínač|tiskárna|átjáró|útválasztó|kiszolgáló|nyomtató|skrivare|skriver|yhdyskäytävä|reititin|palvelin"
    r"|imprimantă|poartă|usmerjevalnik|poslužitelj|ağ geçidi|yönlendirici|sunucu|yazıcı|шлюз|маршрут(?:изатор)?|коммутатор"
    r"|маска|сервер|интерфейс|принтер|подсеть|комутатор|підмережа|інтерфейс|рутер|πύλη|δρομολογητής|διακομιστής|البوابة|بوابة|خادم"
    r"|موجه|שער|נתב|שרת|máy chủ"
)
_MACHINES_ABROAD = (  # in scripts without spaces between words
    "网关|閘道|路由|子网|子網|掩码|遮罩|服务器|伺服器|交换机|交換器|网段|ゲートウェイ|ルーター?|サブネット|サーバー?|スイッチ|カメラ|プリンター?|摄像头|攝影機|打印机|印表機|카메라|프린터|게이트웨이|라우터|서브넷|서버|스위치"
    "|เกตเวย์|เราเตอร์|เซิร์ฟเวอร์"
)
# Of a person: who uses a device, how one comes to use it, and devices that one person has. "Guest VLAN" is a network.
_PERSONAL = (
    r"(?:user(?:name)?|client|customer|visitor|employee|staff|member|guest|patient|student|phone|laptop|tablet|notebook|iphone"
    r"|workstation|subscriber|tenant)(?![ -](?:vlan|wi-?fi|wlan|lan|networks?|subnet|ssid|vpn|pool|gateway|range"
    r"|segment|zone|facing|side|data|service|auth))"
    r"|log(?:ged|s|ging)?[ -]?(?:in|on)|sign(?:ed|s|ing)?[ -]?in|logins?|accepted|attackers?|(?<!bgp )(?<!peering )session"
    r"|mr|mrs|ms|angemeldet|anmeldung|benutzer(?:in)?|nutzer(?:in)?|kunde|kundin|connectée?|utilisat(?:eur|rice)|clien?te"
    r"|usuari[oa]|utente|gebruiker|klant|użytkownik|klient|пользовател[ья]|користувач"
)
# Behind the word for a machine, perhaps with more words, or addresses in clear, between; in a URL it is what serves.
OF_MACHINE: Final = (
    rf"(?:\A(?!(?s:.*)(?<![^\W\d_])(?:{_PERSONAL})(?![^\W\d_]))(?s:.*)"
    rf"(?:(?<![^\W\d_])(?:{_MACHINES})(?![^\W\d_])|{_MACHINES_ABROAD})[^!?\n]{{0,48}}"
    rf"|(?<![a-z])[a-z][a-z0-9+.]{{2,10}}://|[0-9]\.[0-9]{{1,3}}[ ]?(?:-|–|->|→|to)[ ])$"
)
BESIDE_MACHINE: Final = LatePattern(
    rf"[ ]?(?:-|–|->|→|to)[ ]?[0-9]{{1,3}}\.[0-9]|::?/?[a-z]"
    rf"|[ ](?:(?:dev|metric|netmask|mask|port|tcp|udp|icmp)(?![a-z])|255\.|(?:(?:is|was|as|="
    rf"|–|-|ist|est|es|è|é|jest)[ ]|\()"
    rf"(?:(?:the|our|a|its|der|die|das|unser|le|la|el|il|lo)[ ])?(?:[a-z]{{3,8}}[ ])?(?:{_MACHINES})(?![^\W\d_]))",
    re.IGNORECASE,
)
_EXAMPLES = r"rfc[ -]?(?:5737|3849)|test-net(?:-[123])?|documentation|placeholders?|fictional|fictitious|dummy"
OF_EXAMPLE: Final = (
    rf"(?:(?<![a-z])(?:{_EXAMPLES}|(?<!for )(?<!for an )examples?|docs?|documented|samples?|dokumentation|beispiele?|exemples?"
    r"|ejemplos?|esemp[io]+|exemplos?|voorbeeld(?:en)?|przykład(?:y|owy|owe)?|příklady?)(?![a-z])[^!?\n]{0,48})$"
)
BESIDE_EXAMPLE: Final = LatePattern(
    rf"[ ](?:\(|(?:is|are|was|as|=|–|-|comes|from)[ ])(?:[a-z]{{1,12}}[ ]){{0,4}}?(?:{_EXAMPLES})(?![a-z])", re.IGNORECASE
)
