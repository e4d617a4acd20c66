// Texts that an agent might send to harm who reads them: `[subject, body]`.

export const hostile = [
  ['<script>alert(1)</script>', '<script>alert(document.cookie)</script><h1 id="made-of-text">big</h1>'],
  ['<img src=x onerror=alert(2)>', '<img src=x onerror="window.harmed=1"><svg onload="window.harmed=1"><iframe src="javascript:parent.harmed=1">'],
  ['order \u202egnp.exe', 'user\u202e\u2066// who is admin\u2069\u2066 and \u200f\u061c more \u2069'],
  ['\u001b[31mred\u001b[0m \u0007', '\u001b]0;title\u0007\u001b[2J\u001b[1;1H gone\r\nline\u0000\u0008\u0085'],
  ['a long word', 'x'.repeat(256 * 1024)],
  ['long \u0627\u0644\u0639\u0631\u0628\u064a\u0629', '\u0645\u0631\u062d\u0628\u0627 (hello) \u05e9\u05dc\u05d5\u05dd ' + 'Z\u0351\u036b\u0343\u036a\u0302'.repeat(50)],
  ['javascript:alert(3)', '[click](javascript:alert(3)) {{constructor.constructor("alert(4)")()}} ${alert(5)} &lt;b&gt; \u2028 \u2029'],
  ['many lines', Array.from({ length: 400 }, (_, at) => `line ${at}`).join('\n')],
];
