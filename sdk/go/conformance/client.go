package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
)

// line is one call.
type line struct {
	Call        string             `json:"call"`
	Request     tollgate.Request   `json:"request"`
	Requests    []tollgate.Request `json:"requests"`
	Client      tollgate.Request   `json:"client"`
	Reservation string             `json:"reservation"`
	Slot        string             `json:"slot"`
	Costs       tollgate.Costs     `json:"costs"`
	Limit       gcraLimit          `json:"limit"`
	Steps       []gcraStep         `json:"steps"`
	retryCall
}

// caller answers lines.
type caller struct {
	client *tollgate.Client
	slots  map[string]*tollgate.Slot
}

func answerLines() error {
	client, err := newClient()
	if err != nil {
		return err
	}
	caller := &caller{client: client, slots: map[string]*tollgate.Slot{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var call line
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			return err
		}
		answer, err := caller.answer(&call)
		if err != nil {
			answer = map[string]string{"error": code(err)}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func code(err error) string {
	var api *tollgate.APIError
	if errors.As(err, &api) {
		return api.Code
	}
	return "unreachable"
}

func (c *caller) answer(call *line) (any, error) {
	ctx := context.Background()
	switch call.Call {
	case "check":
		return raw(c.client.Check(ctx, call.Request))
	case "check_batch":
		return c.batch(ctx, call.Requests)
	case "reserve":
		return raw(c.client.Reserve(ctx, call.Request))
	case "extend":
		return raw(c.client.Extend(ctx, call.Reservation, call.Costs))
	case "settle":
		settlement, err := c.client.Settle(ctx, call.Reservation, call.Costs)
		if err != nil {
			return nil, err
		}
		return settlement.Raw, nil
	case "usage":
		return c.client.Usage(ctx, call.Client)
	case "acquire_slot":
		return c.acquire(ctx, call.Request)
	case "release_slot":
		return c.release(ctx, call.Slot)
	case "gcra":
		return gcra(call.Limit, call.Steps)
	case "retry":
		return call.retryCall.run()
	default:
		return nil, fmt.Errorf("unknown call %q", call.Call)
	}
}

func raw(decision *tollgate.Decision, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return decision.Raw, nil
}

func (c *caller) batch(ctx context.Context, requests []tollgate.Request) (any, error) {
	results, err := c.client.CheckBatch(ctx, requests)
	if err != nil {
		return nil, err
	}
	answers := make([]any, 0, len(results))
	for _, result := range results {
		if result.Err != nil {
			answers = append(answers, map[string]string{"error": code(result.Err)})
		} else {
			answers = append(answers, result.Decision.Raw)
		}
	}
	return map[string]any{"results": answers}, nil
}

func (c *caller) acquire(ctx context.Context, request tollgate.Request) (any, error) {
	slot, err := c.client.AcquireSlot(ctx, request)
	if err != nil {
		return nil, err
	}
	c.slots[slot.Decision.Slot] = slot
	return slot.Decision.Raw, nil
}

func (c *caller) release(ctx context.Context, receipt string) (any, error) {
	if slot := c.slots[receipt]; slot != nil {
		delete(c.slots, receipt)
		return map[string]bool{"released": slot.Close()}, nil
	}
	released, err := c.client.ReleaseSlot(ctx, receipt)
	return map[string]bool{"released": released}, err
}

type gcraLimit struct {
	Count    string `json:"count"`
	PeriodNS string `json:"period_ns"`
	Burst    string `json:"burst"`
}

type gcraStep struct {
	NowNS string `json:"now_ns"`
	Cost  string `json:"cost"`
}

type gcraResult struct {
	Allowed      bool    `json:"allowed"`
	Limit        string  `json:"limit"`
	Remaining    string  `json:"remaining"`
	RetryAfterNS *string `json:"retry_after_ns"`
	ResetAfterNS string  `json:"reset_after_ns"`
}

func gcra(given gcraLimit, steps []gcraStep) (any, error) {
	count, err1 := strconv.ParseUint(given.Count, 10, 64)
	period, err2 := strconv.ParseInt(given.PeriodNS, 10, 64)
	burst, err3 := strconv.ParseUint(given.Burst, 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	limit, err := tollgate.NewLimit(count, time.Duration(period))
	if err == nil {
		limit, err = limit.WithBurst(burst)
	}
	if err != nil {
		return nil, err
	}
	results := make([]gcraResult, 0, len(steps))
	fullAt := uint64(0)
	for _, step := range steps {
		now, err1 := strconv.ParseUint(step.NowNS, 10, 64)
		cost, err2 := strconv.ParseUint(step.Cost, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		var outcome tollgate.Outcome
		outcome, fullAt = limit.Take(fullAt, now, cost)
		results = append(results, gcraResultOf(outcome))
	}
	return map[string]any{"results": results}, nil
}

func gcraResultOf(outcome tollgate.Outcome) gcraResult {
	result := gcraResult{
		Allowed:      outcome.Allowed,
		Limit:        strconv.FormatUint(outcome.Limit, 10),
		Remaining:    strconv.FormatUint(outcome.Remaining, 10),
		ResetAfterNS: strconv.FormatInt(int64(outcome.ResetAfter), 10),
	}
	if !outcome.Never {
		wait := strconv.FormatInt(int64(outcome.RetryAfter), 10)
		result.RetryAfterNS = &wait
	}
	return result
}
