// Command go-redis uses the client library of the same name with its defaults against the address in its
// argument: it connects, pipelines, transacts under WATCH, subscribes and blocks. It ends with 0 if all of that
// is as with a server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	if err := use(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func use(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: address, Protocol: protocol})
		steps := map[string]func(context.Context, *redis.Client) error{
			"plain": plain, "pipeline": pipeline, "transaction": transaction, "channels": channels, "blocking": blocking,
		}
		for name, step := range steps {
			if err := step(ctx, client); err != nil {
				return fmt.Errorf("%s, RESP%d: %w", name, protocol, err)
			}
		}
		if err := client.Close(); err != nil {
			return err
		}
	}
	return nil
}

func plain(ctx context.Context, client *redis.Client) error {
	if err := client.Set(ctx, "a", "1", time.Minute).Err(); err != nil {
		return err
	}
	if value, err := client.Get(ctx, "a").Result(); err != nil || value != "1" {
		return fmt.Errorf("a is %q: %w", value, err)
	}
	if _, err := client.Get(ctx, "none").Result(); !errors.Is(err, redis.Nil) {
		return fmt.Errorf("a miss is %w", err)
	}
	values, err := client.MGet(ctx, "a", "none").Result()
	if err != nil || len(values) != 2 || values[1] != nil {
		return fmt.Errorf("several are %v: %w", values, err)
	}
	client.HSet(ctx, "h", "f", "v")
	if all, err := client.HGetAll(ctx, "h").Result(); err != nil || all["f"] != "v" {
		return fmt.Errorf("a hash is %v: %w", all, err)
	}
	return nil
}

func pipeline(ctx context.Context, client *redis.Client) error {
	client.Del(ctx, "n")
	replies, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for range 100 {
			pipe.Incr(ctx, "n")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if last := replies[99].(*redis.IntCmd).Val(); last != 100 {
		return fmt.Errorf("the last reply is %d", last)
	}
	return nil
}

func transaction(ctx context.Context, client *redis.Client) error {
	client.Set(ctx, "{t}n", 1, 0)
	double := func(tx *redis.Tx) error {
		n, err := tx.Get(ctx, "{t}n").Int()
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "{t}n", n*2, 0)
			return nil
		})
		return err
	}
	if err := client.Watch(ctx, double, "{t}n"); err != nil {
		return err
	}
	if n, err := client.Get(ctx, "{t}n").Int(); err != nil || n != 2 {
		return fmt.Errorf("it is %d: %w", n, err)
	}
	interfered := func(tx *redis.Tx) error {
		client.Set(ctx, "{t}n", 100, 0)
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "{t}n", 0, 0)
			return nil
		})
		return err
	}
	if err := client.Watch(ctx, interfered, "{t}n"); !errors.Is(err, redis.TxFailedErr) {
		return fmt.Errorf("a broken WATCH is %w", err)
	}
	return nil
}

func channels(ctx context.Context, client *redis.Client) error {
	subscriber := client.Subscribe(ctx, "news")
	defer subscriber.Close()
	if _, err := subscriber.Receive(ctx); err != nil {
		return err
	}
	if err := client.Publish(ctx, "news", "hello").Err(); err != nil {
		return err
	}
	message, err := subscriber.ReceiveMessage(ctx)
	if err != nil || message.Payload != "hello" {
		return fmt.Errorf("the message is %v: %w", message, err)
	}
	return nil
}

func blocking(ctx context.Context, client *redis.Client) error {
	go func() {
		time.Sleep(50 * time.Millisecond)
		client.RPush(ctx, "list", "x")
	}()
	popped, err := client.BLPop(ctx, 10*time.Second, "list").Result()
	if err != nil || popped[1] != "x" {
		return fmt.Errorf("popped %v: %w", popped, err)
	}
	return nil
}
