package bench

import (
	"strings"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Origin says where data sets come from: all whose names begin with Prefix.
type Origin struct {
	Prefix string
	From   string // whose, and where
	// URL is the page that offers the file, and Licence what its owner allows.
	URL, Licence string
	Shape        string // records, columns and clusters
	// SHA256 is of the set's text, a record a line, as these suites read it; empty where
	// no copy was at hand.
	SHA256 string
	// Convert is how to make it from what URL offers: the arguments of cohort data
	// import after the set's name, or what else to do.
	Convert string
}

const (
	sipu     = "https://cs.uef.fi/sipu/datasets/"
	sipuFree = "free for research with citation (Fränti and Sieranoja, K-means properties on six clustering " +
		"benchmark datasets, 2018)"
	uci        = "UCI Machine Learning Repository, CC BY 4.0"
	released   = "https://github.com/D-Diaa/privateclustering"
	generated  = "none: it is generated"
	clusterGen = "R package clusterGeneration, genRandomClust"
)

// origins are by the beginning of names; the first that fits counts.
var origins = []Origin{
	{
		Prefix: "timesynth_", From: clusterGen + " with equal sizes and sepVal 0.70",
		URL:     "https://cran.r-project.org/package=clusterGeneration",
		Licence: generated,
		Shape:   "by its name: clusters, columns, records",
		Convert: "generate it in R, or use builtin:timesynth, the same construction",
	},
	{
		Prefix: "synth_", From: clusterGen + " with sepVal 0.21 or 0.70",
		URL:     "https://cran.r-project.org/package=clusterGeneration",
		Licence: generated,
		Shape:   "about 10000 records; clusters and columns by its name",
		Convert: "generate it in R, or use builtin:synth, the same construction",
	},
	{
		Prefix: "birch2_100k", From: "SIPU, Birch2",
		URL:     sipu,
		Licence: sipuFree,
		Shape:   "100000 x 2, k = 100",
		SHA256:  "b837b4004b598a6bc0888cd8996f30949ae5cc8a28dfe4144b4a03f1138ca43b",
		Convert: "birch2.txt --k 100",
	},
	{
		Prefix: "birch2_25k", From: "the code that FastLloyd's authors released, data/birch2.txt: a sample of Birch2",
		URL:     released,
		Licence: sipuFree,
		Shape:   "25000 x 2, k = 100",
		SHA256:  "ed280649fda310243bd59c70067287e52b1bdc87110380ac138fc73479a41ee9",
		Convert: "birch2.txt --k 100",
	},
	{
		Prefix: "s1", From: "SIPU, S1; also data/s1.txt of the code that FastLloyd's authors released",
		URL:     sipu,
		Licence: sipuFree,
		Shape:   "5000 x 2, k = 15",
		SHA256:  "6e4f729d8b288478b9b222a3622b2be3ba47041706a3c495ac4e57b3866cdf1f",
		Convert: "s1.txt --k 15",
	},
	{
		Prefix: "iris", From: "the code that FastLloyd's authors released, data/iris.txt",
		URL:     released,
		Licence: uci,
		Shape:   "150 x 4, k = 3",
		SHA256:  "0b0466e6508c8f6411a1f36aac80ffb96416a02d6ad40c346f69d426e7ce9618",
		Convert: "iris.txt --k 3",
	},
	{
		Prefix: "lsun", From: "the code that FastLloyd's authors released, data/lsun.txt (FCPS, Ultsch 2005)",
		URL:     released,
		Licence: "free for research with citation",
		Shape:   "400 x 2, k = 3",
		SHA256:  "eb535a514018abf9cbd3c9745fa9ad0c42ec51d0e8f4cfcbeb87394350091cbb",
		Convert: "lsun.txt --k 3",
	},
	{
		Prefix: "house", From: "the code that FastLloyd's authors released, data/house.txt: House of SIPU, 5 bits a colour",
		URL:     released,
		Licence: sipuFree,
		Shape:   "1837 x 3, k = 3",
		SHA256:  "8708b41a94afe04e8a185dba83a1e9372e51d381a6fe996ab87e9ce999ae2cac",
		Convert: "house.txt --k 3",
	},
	{
		Prefix: "adult", From: "the code that FastLloyd's authors released, data/adult.txt: six numeric columns of Adult",
		URL:     released,
		Licence: uci,
		Shape:   "48842 x 6, k = 3",
		SHA256:  "b5c9a3e703f4f7c30c613a71bf67a09106a818e3291a7132b8d32a7f6688d3f3",
		Convert: "adult.txt --k 3",
	},
	{
		Prefix: "mnist", From: "MNIST, the four IDX files",
		URL:     "https://yann.lecun.com/exdb/mnist/",
		Licence: "CC BY-SA 3.0 (LeCun, Cortes, Burges)",
		Shape:   "70000 x 784, k = 10",
		Convert: "put the four files into a folder mnist beside the manifest and name the folder there",
	},
	{
		Prefix: "letter", From: "UCI, Letter Recognition",
		URL:     "https://archive.ics.uci.edu/dataset/59",
		Licence: uci,
		Shape:   "20000 x 16, k = 26",
		SHA256:  "ff38aa5025d2e8d5c0f20ab28d19ddf879d975e3c1d3f164f1507dbab4fe6f93",
		Convert: "letter-recognition.data --header no --columns 2-17 --label-column 1 --k 26",
	},
	{
		Prefix: "bank", From: "UCI, Bank Marketing, the numeric columns of bank-full.csv; " +
			"CKKS-V has 30090 of its 45211 records, by a rule that it does not give",
		URL:     "https://archive.ics.uci.edu/dataset/222",
		Licence: uci,
		Shape:   "45211 x 7, k = 7",
		SHA256:  "2e97b177abc65053f309bd0436962f55f83ef467d1e78c863e033443e14e0f86",
		Convert: "bank-full.csv --columns age,balance,day,duration,campaign,pdays,previous --k 7",
	},
	{
		Prefix: "nyctaxi", From: "New York City Taxi and Limousine Commission, trip records of January 2016; " +
			"the papers do not say which columns and records they took",
		URL:     "https://www.nyc.gov/site/tlc/about/tlc-trip-record-data.page",
		Licence: "public",
		Shape:   "100000 x 8, k = 5",
		SHA256:  "bcd251ae16f7a0879e941c5ba52c5849f06559cfd1fec3aa04d3b5b9a71cab74",
		Convert: "yellow_tripdata_2016-01.parquet --columns NUMERIC,COLUMNS --rows 100000 --k 5",
	},
	{
		Prefix: "mixgauss", From: "a mixture of five Gaussians in eight dimensions, generate_mixgauss.py of the data folder",
		Licence: generated,
		Shape:   "20000 x 8, k = 5",
		SHA256:  "80d620feceb80ad2b44154978c5b597ff60a5b087f362869c9293e56463528fe",
		Convert: "generate it, or use builtin:blobs --n 20000 --d 8 --k 5",
	},
	{
		Prefix: "loan", From: "Kaggle, Home Credit Default Risk, application_train.csv: 60000 records, " +
			"16 columns such as credit amount, family size, housing and social circle",
		URL:     "https://www.kaggle.com/c/home-credit-default-risk/data",
		Licence: "Kaggle's competition rules: not to be passed on",
		Shape:   "60000 x 16, k = 5",
		Convert: "application_train.csv --columns SIXTEEN,NUMERIC,COLUMNS --missing drop-row --rows 60000 --k 5",
	},
	{
		Prefix: "har", From: "UCI, Human Activity Recognition Using Smartphones, reduced to ten principal axes",
		URL:     "https://archive.ics.uci.edu/dataset/240",
		Licence: uci,
		Shape:   "10299 x 10, k = 6",
		Convert: "X_train.txt X_test.txt --labels y_train.txt,y_test.txt --pca 10 --k 6",
	},
	{
		Prefix: "image", From: "SIPU, House before it was quantised: 34112 distinct colours",
		URL:     sipu,
		Licence: sipuFree,
		Shape:   "34112 x 3, k = 3",
		Convert: "image.txt --k 3",
	},
}

// FindOrigin returns where a set comes from.
func FindOrigin(name string) (Origin, error) {
	for _, o := range origins {
		if strings.HasPrefix(name, o.Prefix) {
			return o, nil
		}
	}
	var names []string
	for _, o := range origins {
		names = append(names, strings.TrimSuffix(o.Prefix, "_"))
	}
	return Origin{}, fault.Request("data set "+name, "no suite reads one of that name", "name one of "+
		strings.Join(names, ", "))
}

// howToGet says where missing sets come from and how to make them known.
func howToGet(missing []string) string {
	names := make(map[string][]string)
	var from []string
	for _, m := range missing {
		if o, err := FindOrigin(m); err == nil {
			if names[o.From] == nil {
				from = append(from, o.From)
			}
			names[o.From] = append(names[o.From], m)
		}
	}
	var parts []string
	for _, f := range from {
		parts = append(parts, shortList(names[f])+" from "+f)
	}
	return strings.Join(append(parts,
		"cohort data fetch-help NAME says more, cohort data import puts it into a folder"), "; ")
}
