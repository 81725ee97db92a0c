// Does with go-sql-driver what services do: statements with arguments, both prepared and written into the text,
// transactions, generated ids, and many goroutines over one pool.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	_ "github.com/go-sql-driver/mysql"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func use(db *sql.DB, table string) {
	ctx := context.Background()
	must(db.Ping())
	_, err := db.Exec("CREATE TABLE " + table + " (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(100), d DATETIME(6))")
	must(err)
	when := time.Date(2024, 2, 29, 12, 30, 15, 123456000, time.UTC)
	for n := 1; n <= 10; n++ {
		done, err := db.Exec("INSERT INTO "+table+" (a, b, d) VALUES (?, ?, ?)", n, fmt.Sprintf("text '%d' äöü€", n), when)
		must(err)
		id, err := done.LastInsertId()
		must(err)
		if id != int64(n) {
			log.Fatal("id ", id)
		}
	}
	statement, err := db.Prepare("SELECT a, b, d FROM " + table + " WHERE id = ?")
	must(err)
	for n := 1; n <= 10; n++ {
		var a int
		var b string
		var d time.Time
		must(statement.QueryRow(n).Scan(&a, &b, &d))
		if a != n || b != fmt.Sprintf("text '%d' äöü€", n) || !d.Equal(when) {
			log.Fatal("row ", a, b, d)
		}
	}
	must(statement.Close())
	transaction, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	must(err)
	_, err = transaction.Exec("UPDATE "+table+" SET a = a + ?", 100)
	must(err)
	var sum int
	must(transaction.QueryRow("SELECT SUM(a) FROM " + table).Scan(&sum))
	if sum != 1055 {
		log.Fatal("sum ", sum)
	}
	must(transaction.Rollback())
	must(db.QueryRow("SELECT SUM(a) FROM " + table).Scan(&sum))
	if sum != 55 {
		log.Fatal("sum behind the rollback ", sum)
	}
	var all sync.WaitGroup
	for n := 0; n < 20; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for m := 0; m < 20; m++ {
				var got int
				must(db.QueryRow("SELECT ? + a FROM "+table+" WHERE id = ?", n, m%10+1).Scan(&got))
				if got != n+m%10+1 {
					log.Fatal("got ", got)
				}
			}
		}()
	}
	all.Wait()
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := db.ExecContext(short, "DO SLEEP(60)"); err == nil {
		log.Fatal("it slept")
	}
	must(db.Ping())
	_, err = db.Exec("DROP TABLE " + table)
	must(err)
}

func main() {
	for _, options := range []string{"parseTime=true", "parseTime=true&interpolateParams=true&collation=utf8mb4_bin"} {
		db, err := sql.Open("mysql", os.Args[1]+"?"+options)
		must(err)
		db.SetMaxOpenConns(10)
		use(db, "of_go")
		must(db.Close())
	}
}
