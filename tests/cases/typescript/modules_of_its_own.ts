//: what: a program that writes TypeScript modules and requires them
//: stdout: area 12 kind Rect, types only, main true
//: files: shapes.ts types.ts
import * as fs from 'fs';

fs.writeFileSync('types.ts', 'export interface Sized { area(): number }\nexport type Name = string;\n');
fs.writeFileSync('shapes.ts', `
import type { Sized } from './types';
export class Rect implements Sized {
  readonly width: number;
  readonly height: number;
  constructor(width: number, height: number) { this.width = width; this.height = height; }
  area(): number { return this.width * this.height; }
}
`);

type Shapes = { Rect: new (width: number, height: number) => { area(): number } };

async function main(): Promise<void> {
  const shapes = (await import('./shapes.ts' as string)) as Shapes;
  const rect = new shapes.Rect(3, 4);
  const types = await import('./types.ts' as string);
  const only = Object.keys(types).filter((name) => name !== 'default' && name !== 'module.exports').length === 0;
  console.log(`area ${rect.area()} kind ${rect.constructor.name},`, only ? 'types only,' : 'types left,',
    'main', process.argv[1]!.endsWith('main.ts'));
}

main();
