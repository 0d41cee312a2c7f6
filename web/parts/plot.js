// uPlot, in a file of its own: it is loaded with the first chart.
export { default as Plot } from 'uplot'
