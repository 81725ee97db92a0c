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

// Users of a pool, which has one connection, take turns at it, and users of another pool are beside them. None
// of them has anything of another one.
func share(db, other *sql.DB, table string) {
	ctx := context.Background()
	for _, pool := range []*sql.DB{db, other} {
		pool.SetMaxOpenConns(1)
	}
	_, err := db.Exec("CREATE TABLE " + table + " (id INT PRIMARY KEY AUTO_INCREMENT, a INT)")
	must(err)
	for n := 0; n < 5; n++ {
		within, cancel := context.WithCancel(ctx)
		transaction, err := db.BeginTx(within, &sql.TxOptions{Isolation: sql.LevelSerializable})
		must(err)
		_, err = transaction.Exec("INSERT INTO "+table+" (a) VALUES (?)", n)
		must(err)
		if n%2 == 0 {
			// The pool rolls it back, or closes the connection.
			cancel()
		} else {
			must(transaction.Rollback())
		}
		one, err := db.Conn(ctx)
		must(err)
		_, err = one.ExecContext(ctx, "SET @own = 'mine'")
		must(err)
		_, err = one.ExecContext(ctx, "CREATE TEMPORARY TABLE IF NOT EXISTS own (id INT)")
		must(err)
		must(one.Close())
		cancel()
		for _, pool := range []*sql.DB{db, other} {
			var within, count int
			var isolation string
			row := pool.QueryRow("SELECT @@in_transaction, @@tx_isolation, (SELECT COUNT(*) FROM " + table + ")")
			must(row.Scan(&within, &isolation, &count))
			if within != 0 || isolation != "REPEATABLE-READ" || count != 0 {
				log.Fatal("something of a user before: ", within, isolation, count)
			}
		}
		var own sql.NullString
		must(other.QueryRow("SELECT @own").Scan(&own))
		if own.Valid {
			log.Fatal("a variable of another pool")
		}
		if _, err := other.Exec("INSERT INTO own VALUES (1)"); err == nil {
			log.Fatal("a table of another pool")
		}
	}
	_, err = db.Exec("DROP TABLE " + table)
	must(err)
}

func main() {
	for _, options := range []string{"parseTime=true", "parseTime=true&interpolateParams=true&collation=utf8mb4_bin"} {
		db, err := sql.Open("mysql", os.Args[1]+"?"+options)
		must(err)
		db.SetMaxOpenConns(10)
		use(db, "of_go")
		other, err := sql.Open("mysql", os.Args[1]+"?"+options)
		must(err)
		share(db, other, "of_pools")
		must(other.Close())
		must(db.Close())
	}
}
