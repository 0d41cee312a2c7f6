//: act: ask the metadata services of clouds for credentials
const hosts = ['169.254.169.254', '169.254.170.2', 'metadata.google.internal', '100.100.100.200', '168.63.129.16', '[fd00:ec2::254]'];
const paths = ['/latest/meta-data/iam/security-credentials/', '/computeMetadata/v1/instance/service-accounts/default/token', '/metadata/instance'];

async function main() {
  const answers = new Set();
  for (const host of hosts) {
    for (const path of paths) {
      try {
        const response = await fetch(`http://${host}${path}`, { headers: { 'Metadata-Flavor': 'Google' }, signal: AbortSignal.timeout(2000) });
        console.log(`ESCAPED: ${host} answered ${response.status}`);
        process.exit(66);
      } catch (error) {
        const code = error.cause?.code ?? error.name;
        if (!['ENETUNREACH', 'EAI_AGAIN', 'ENOTFOUND', 'EHOSTUNREACH', 'EADDRNOTAVAIL'].includes(code)) {
          console.log(`ESCAPED: ${host} was not unreachable but ${code}`);
          process.exit(66);
        }
        answers.add(code);
      }
    }
  }
  console.log(`contained: ${[...answers].sort().join(' ')}`);
}

main();
